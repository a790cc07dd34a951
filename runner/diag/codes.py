"""`CODES`: every diagnostic code and what it means. `explain_code`: that as text for `validate --explain`.

A new code is one more `Code` in `codes_file` (text, keys, values) or `codes_parts` (what the file refers to).
"""

from __future__ import annotations

from runner.diag.code import Code
from runner.diag.codes_file import FILE_CODES
from runner.diag.codes_parts import PART_CODES
from runner.diag.suggest import nearest

CODES: dict[str, Code] = {code.name: code for code in (*FILE_CODES, *PART_CODES)}
"""By name, in the order of the table."""


def explain_code(code: str) -> str:
    """Title, explanation, example and cure of `code`. Raises KeyError, with what was meant, for no code of ours."""
    import textwrap  # 1 ms that only `--explain` pays

    entry = CODES.get(code)
    if entry is None:
        near = nearest(code, CODES)
        meant = f"; did you mean `{near}`?" if near else "; `validate --explain` alone lists the codes"
        raise KeyError(f"there is no code `{code}`{meant}")
    example = textwrap.indent(entry.example, "    ")
    cure = textwrap.fill(entry.cure, 88, break_long_words=False, break_on_hyphens=False)
    explanation = textwrap.fill(entry.explanation, 88, break_long_words=False, break_on_hyphens=False)
    return f"{entry.name}: {entry.title}\n\n{explanation}\n\nExample:\n\n{example}\n\nCure: {cure}\n"
