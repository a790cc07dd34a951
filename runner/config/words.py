"""Our own words for everything the models refuse. No text of pydantic's reaches a user.

Each finding points at the value (or the key, when the key is wrong), states the fact in its message and the cure in
its label, with a mechanical fix where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from runner.config.cures import PATTERNS, Case, better_reference, cure, describe_value, is_plain, table_help, word_fix
from runner.config.fields import lookup
from runner.config.kinds import ALL, CALL, GRADERS
from runner.config.layers import Origins, looks_secret
from runner.config.names import dotted, unknown_key
from runner.diag.diagnostic import Diagnostic, Fix, Path
from runner.diag.suggest import alternatives, nearest
from runner.records.quick import quick

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_TYPES = {
    "string_type": "a string",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "`true` or `false`",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "mapping_type": "a table",
    "tuple_type": "an array",
    "list_type": "an array",
}
_BOUNDS = {
    "greater_than_equal": ("at least {}", "ge"),
    "greater_than": ("more than {}", "gt"),
    "less_than_equal": ("at most {}", "le"),
    "less_than": ("less than {}", "lt"),
}


@quick
class Problem:
    """One refusal of the models: its path in the file, the subtree it spoils, and the finding."""

    path: Path
    broken: Path
    finding: Diagnostic
    meant: Path | None = None


def problem(
    error: ErrorDetails, tree: Mapping[str, Any], origins: Origins, written: Callable[[Path], Path] = tuple
) -> Problem:
    """What the file did wrong, from one refusal. `written` finds a path of the models' tree in the file's."""
    path = written(path_of(error["loc"], tree))
    case = Case(path, error["input"], error.get("ctx", {}), error["type"], tree, origins)
    if error["type"] == "extra_forbidden":
        unknown = unknown_key(path, tree, origins)
        return Problem(path, path, unknown.finding, (*path[:-1], unknown.meant) if unknown.meant else None)
    if error["type"] == "missing":
        return Problem(path, path[:-1], _missing(case))
    return Problem(path, path, _FINDINGS.get(error["type"], _other)(case))


def path_of(loc: tuple[str | int, ...], tree: Mapping[str, Any]) -> Path:
    """The path in the file of a location in the models, which names the kind after a grader or a tool."""
    kinds = ALL.get(str(loc[0])) if len(loc) > 2 else None
    if kinds is not None and (loc[2] in kinds.models or loc[2] == CALL):
        return (*loc[:2], *loc[3:])
    return tuple(loc)


def _missing(case: Case) -> Diagnostic:
    parent, key = case.path[:-1], case.path[-1]
    place = case.origins.key_place(parent)
    if isinstance(key, int):
        message, where = f"`{dotted(parent)}` must hold two numbers", case.origins.value_place(parent)
        return Diagnostic("wrong-type", message, where, "write `[low, high]`")
    either = ', or `builtin = "bash"`' if parent[0] == "tools" and key == "call" else ""
    label = f"add `{key} = {_sample(case)}`{either}"
    return Diagnostic("missing-key", f"`{dotted(parent)}` needs `{key}`", place, label)


def _sample(case: Case) -> str:
    known = lookup(case.path, case.tree)
    samples = {"call": '"module:name"', "open": '"module:name"', "criteria": "[{ id = …, text = … }]"}
    samples |= {"input": "0.25", "output": "2.00", "choices": '["A", "B"]', "expect": "…", "schema": "{ … }"}
    return samples.get(str(case.path[-1]), '"…"' if known is not None and known.annotation is str else "…")


def _wrong_type(case: Case) -> Diagnostic:
    wanted = _TYPES[case.type]
    label, text = cure(case, wanted)
    found = describe_value(case.value, show=case.type != "string_type" and not looks_secret(case.path))
    place = case.place if case.place is not None else case.key_place
    exact = place is not None and place == case.place and is_plain(case, place)
    fix = Fix(place, text) if text and place is not None and exact else None
    helps = table_help(case) if wanted == "a table" else ()
    return Diagnostic(
        "wrong-type", f"`{case.name}` must be {wanted}, found {found}", place, label, fix=fix, helps=helps
    )


def _bound(case: Case) -> Diagnostic:
    words, key = _BOUNDS[case.type]
    limit = case.context[key]
    bound = words.format(int(limit) if isinstance(limit, float) and limit.is_integer() else limit)
    return Diagnostic("out-of-range", f"`{case.name}` must be {bound}, found {case.value}", case.place, bound)


def _too_small(case: Case) -> Diagnostic:
    bound = str(case.context["bound"])
    shown = f"`{case.value}`" if isinstance(case.value, str) else str(case.value)
    return Diagnostic("out-of-range", f"`{case.name}` must be {bound}, found {shown}", case.place, bound)


def _length(case: Case) -> Diagnostic:
    least, most = case.context.get("min_length"), case.context.get("max_length")
    if case.type == "too_long":
        bound = f"at most {most} values"
    else:
        bound = "at least one value" if least == 1 else f"at least {least} values"
    return Diagnostic("out-of-range", f"`{case.name}` must have {bound}", case.place, bound)


def _literal(case: Case) -> Diagnostic:
    expected = str(case.context["expected"])
    words = re.findall(r"'([^']*)'", expected)
    if not words:
        return _fixed(case, expected)
    if not isinstance(case.value, str):
        message = f"`{case.name}` must be a string, found {describe_value(case.value)}"
        return Diagnostic("wrong-type", message, case.place, f"one of: {', '.join(words)}")
    if case.path[-1] == "kind" and case.path[0] == "graders":
        return _kind(case, "grader kind", words)
    near = nearest(case.value, words)
    label = f"did you mean `{near}`?" if near else f"one of: {', '.join(words)}"
    notes = (f"values of `{case.name}`: {', '.join(words)}",) if near else ()
    message = f"`{case.name}` cannot be `{case.value}`"
    return Diagnostic("bad-choice", message, case.place, label, notes=notes, fix=word_fix(case, near))


def _fixed(case: Case, expected: str) -> Diagnostic:
    """A value of which one or two are possible: `true` of a switch, the version of the format, a status."""
    word = expected.lower()
    if case.path == ("schema",) and isinstance(case.value, int) and not isinstance(case.value, bool):
        helps = ("update osmosis-run, or write the file in format 1",)
        message = f"this osmosis-run reads format 1, the file says `schema = {case.value}`"
        return Diagnostic("schema-version", message, case.place, "must be `1`", helps=helps)
    message = f"`{case.name}` must be `{word}`, found {describe_value(case.value)}"
    if " or " in word:
        code = "bad-choice" if type(case.value) is int else "wrong-type"
        return Diagnostic(code, message.replace(f"`{word}`", word), case.place, f"write {word}")
    return Diagnostic("wrong-type", message, case.place, f"write `{word}`, or remove the key")


def _tag_missing(case: Case) -> Diagnostic:
    notes = (f"{GRADERS.noun}s: {', '.join(GRADERS.models)}",)
    near = next((key for key in case.value if key == "type" or nearest(str(key), ["kind"])), None)
    if near is not None:
        place = case.origins.key_place((*case.path, near))
        exact = place is not None and place.source.text[place.start : place.end] == near
        fix = Fix(place, "kind") if place is not None and exact else None
        message = f"`[{case.name}]` has no key `{near}`"
        return Diagnostic("renamed-key", message, place, "it is called `kind`", fix=fix)
    place = case.origins.key_place(case.path)
    return Diagnostic("missing-key", f"`{case.name}` needs `kind`", place, 'add `kind = "exact"`', notes=notes)


def _tag_unknown(case: Case) -> Diagnostic:
    kinds = ALL[str(case.path[0])]
    value = case.value.get(kinds.key) if isinstance(case.value, Mapping) else case.value
    inner = Case((*case.path, kinds.key), value, {}, "unknown_kind", case.tree, case.origins)
    if not isinstance(value, str):
        return Diagnostic("wrong-type", f"`{inner.name}` must be a string, found {describe_value(value)}", inner.place)
    return _kind(inner, kinds.noun, list(kinds.models))


def _unknown_kind(case: Case) -> Diagnostic:
    if str(case.context["noun"]) == "agent":
        text = str(case.value)
        if re.fullmatch(r"[^./:][^:]*\.py", text):  # an entrypoint is a whole file
            better = f"./{text}"
            message = f"`{case.name}` must name a file as `./file.py`, found `{text}`"
            return Diagnostic(
                "bad-reference", message, case.place, f"begin with `./`: `{better}`", fix=word_fix(case, better)
            )
        if any(character in text for character in "./:"):
            return _reference(case)
        helps = ('your own class is named by reference: `"package.module:Class"`',)
        found = _kind(case, "agent", list(case.context["kinds"]))
        return found if found.label else Diagnostic(found.code, found.message, found.place, "", helps, found.notes)
    return _kind(case, str(case.context["noun"]), list(case.context["kinds"]))


def _kind(case: Case, noun: str, kinds: list[str]) -> Diagnostic:
    near = nearest(str(case.value), kinds)
    label = f"did you mean `{near}`?" if near else ""
    notes = (f"{noun}s: {alternatives(kinds)}",)
    message = f"no {noun} is called `{case.value}`"
    return Diagnostic("unknown-kind", message, case.place, label, notes=notes, fix=word_fix(case, near))


def _quantity(case: Case) -> Diagnostic:
    wanted, label = str(case.context["what"]), str(case.context["cure"])
    shown = f"`{case.value}`" if isinstance(case.value, str) else describe_value(case.value)
    message = f"`{case.name}` must be {wanted} {_WITH[wanted]}, found {shown}"
    text = label.removeprefix("write a unit: `").removesuffix("`")
    place = case.place
    fix = Fix(place, text) if case.context["bare"] and place is not None else None
    return Diagnostic(_QUANTITIES[wanted], message, place, label, fix=fix)


_QUANTITIES = {"a duration": "bad-duration", "an amount of money": "bad-money", "a size": "bad-size"}
_WITH = {"a duration": "with a unit", "an amount of money": "in USD", "a size": "with a unit"}


def _choice(case: Case) -> Diagnostic:
    wanted = str(case.context["wanted"])
    shown = isinstance(case.value, str) and not looks_secret(case.path)
    found = f"`{case.value}`" if shown else describe_value(case.value)
    return Diagnostic("wrong-type", f"`{case.name}` must be {wanted}, found {found}", case.place, f"expected {wanted}")


def _exactly_one(case: Case) -> Diagnostic:
    words, found = list(case.context["keys"]), list(case.context["found"])
    message = f"`{case.name}` takes exactly one of {', '.join(f'`{word}`' for word in words)}"
    if found:
        return Diagnostic("one-of", message, case.place, f"found {' and '.join(f'`{word}`' for word in found)}")
    near = next((near for key in case.value if (near := nearest(str(key), words))), None)
    return Diagnostic("one-of", message, case.place, f"did you mean `{near}`?" if near else "add one")


def _secret(case: Case) -> Diagnostic:
    helps = ("keep the key in the environment; if this file was ever shared, replace the key",)
    message = f"`{case.name}` holds a secret in the file"
    meant = re.fullmatch(r"(?:\$|\$\{|env:|ENV:)([A-Za-z_][A-Za-z0-9_]*)\}?", str(case.value))
    if meant:
        message = f"`{case.name}` names a variable in a way that is not read"
        return Diagnostic("wrong-type", message, case.place, f'write `{{ env = "{meant[1]}" }}`')
    return Diagnostic("secret-in-file", message, case.place, 'name the variable instead: `{ env = "NAME" }`', helps)


def _text_or_file(case: Case) -> Diagnostic:
    slip = next((key for key in case.value if nearest(key, ["file"])), None) if isinstance(case.value, dict) else None
    if slip is not None:
        place = case.origins.key_place((*case.path, slip))
        return Diagnostic("unknown-key", f"`[{case.name}]` has no key `{slip}`", place, "did you mean `file`?")
    found = "a table with other keys" if case.context.get("table") else describe_value(case.value)
    message = f'`{case.name}` must be a string or `{{ file = "…" }}`, found {found}'
    return Diagnostic("wrong-type", message, case.place, 'write `"…"` or `{ file = "…" }`')


def _reference(case: Case) -> Diagnostic:
    text = str(case.value)
    label, better = better_reference(text)
    fix = word_fix(case, better) if better else None
    message = f"`{case.name}` must name code as `package.module:name` or `./file.py:name`, found `{text}`"
    return Diagnostic("bad-reference", message, case.place, label, fix=fix)


def _pattern(case: Case) -> Diagnostic:
    pattern = str(case.context["pattern"])
    for part, wanted, example in PATTERNS:
        if part in pattern:
            message = f"`{case.name}` must be {wanted}, found `{case.value}`"
            return Diagnostic("bad-value", message, case.place, example)
    return _other(case)


def _empty(case: Case) -> Diagnostic:
    return Diagnostic("bad-value", f"`{case.name}` must name a file or folder", case.place, "this names nothing")


def _other(case: Case) -> Diagnostic:
    """For a refusal nobody foresaw: the place is right even where the words are general."""
    found = "" if looks_secret(case.path) else f", found {describe_value(case.value)}"
    return Diagnostic("bad-value", f"`{case.name}` cannot have this value{found}", case.place)


_FINDINGS: dict[str, Callable[[Case], Diagnostic]] = {
    **dict.fromkeys(_TYPES, _wrong_type),
    **dict.fromkeys(_BOUNDS, _bound),
    "too_small": _too_small,
    "too_short": _length,
    "too_long": _length,
    "literal_error": _literal,
    "union_tag_not_found": _tag_missing,
    "union_tag_invalid": _tag_unknown,
    "unknown_kind": _unknown_kind,
    "quantity": _quantity,
    "choice_type": _choice,
    "exactly_one": _exactly_one,
    "secret_in_file": _secret,
    "text_or_file": _text_or_file,
    "reference": _reference,
    "string_pattern_mismatch": _pattern,
    "empty": _empty,
}
