"""`nearest`: the name the user probably meant. `alternatives`: the names there are, when they are few."""

from __future__ import annotations

from collections.abc import Iterable

_ENOUGH = 0.6
_CLEAR_LEAD = 0.06
_FEW = 12


def nearest(word: str, names: Iterable[str]) -> str | None:
    """The one of `names` that `word` is a slip of, or None when none is near or two are equally near.

    Case and `_`/`-`/space do not count as differences; neighbouring letters swapped count as one slip.
    """
    known = [name for name in dict.fromkeys(names) if name != word]
    folded = _fold(word)
    if not folded:
        return None
    same = [name for name in known if _fold(name) == folded]
    if same:
        return same[0] if len(same) == 1 else None
    swapped = [name for name in known if _is_swap(folded, _fold(name))]
    if len(swapped) == 1:
        return swapped[0]
    ranked = sorted(((_likeness(folded, _fold(name)), name) for name in known), reverse=True)
    if not ranked or ranked[0][0] < _ENOUGH:
        return None
    if len(ranked) > 1 and ranked[0][0] < 0.9 and ranked[0][0] - ranked[1][0] < _CLEAR_LEAD:
        return None
    return ranked[0][1]


def alternatives(names: Iterable[str]) -> str | None:
    """The names in a row, `a, b, c`, in their order; None when there are none or more than twelve."""
    known = list(dict.fromkeys(names))
    return ", ".join(known) if 0 < len(known) <= _FEW else None


def _fold(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "").replace(" ", "")


def _is_swap(word: str, name: str) -> bool:
    if len(word) != len(name):
        return False
    differ = [index for index, (one, other) in enumerate(zip(word, name, strict=True)) if one != other]
    if len(differ) != 2 or differ[1] != differ[0] + 1:
        return False
    first, second = differ
    return word[first] == name[second] and word[second] == name[first]


def _likeness(word: str, name: str) -> float:
    import difflib  # 2 ms, and a correct file needs none of it

    # The ratio depends on the order of its arguments; the larger of the two is the fairer.
    forward = difflib.SequenceMatcher(None, word, name, autojunk=False).ratio()
    return max(forward, difflib.SequenceMatcher(None, name, word, autojunk=False).ratio())
