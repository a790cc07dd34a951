"""What runs inside a worker process: the only room of math-verify and sympy.

A script of its own, run by path: it imports nothing of this package, and the standard library until asked to load
more. One JSON object a line comes in, one goes out; `{"error": ...}` means that it could not say.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from importlib import import_module
from typing import Any


def main() -> None:
    """Answer requests from stdin until it closes. The first argument is the memory limit in bytes."""
    _limit_memory(int(sys.argv[1]))
    logging.disable(logging.CRITICAL)
    # Whatever a library prints must not land among the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        answers.write(json.dumps(_reply(line)) + "\n")
        answers.flush()


def _limit_memory(size: int) -> None:
    try:
        import resource
    except ImportError:  # not a POSIX system: the deadline still holds
        return
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    wanted = size if hard == resource.RLIM_INFINITY else min(size, hard)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


def _reply(line: str) -> dict[str, Any]:
    try:
        request = json.loads(line)
        return _KINDS[request["kind"]](request)
    except MemoryError:
        return {"error": "comparing this answer needed more memory than a worker process may use"}
    except RecursionError:
        return {"error": "comparing this answer went too deep"}
    except Exception as error:
        return {"error": f"the worker process could not answer: {type(error).__name__}: {str(error)[:300]}"}


def _load(request: dict[str, Any]) -> dict[str, Any]:
    if request["what"] != "math":
        return {}
    try:
        import_module("math_verify")
        import_module("latex2sympy2_extended")
    except ImportError as error:
        return {
            "error": "this label is more than a plain number, and comparing it needs the math extra: "
            f'pip install "osmosis-run[math]" ({error})',
            "error_kind": "math_extra_missing",
        }
    # Grammars are built at the first use, which would count against the first answer.
    return {"ready": bool(_parse("\\frac{x}{2}"))}


def _find(request: dict[str, Any]) -> dict[str, Any]:
    compiled = re.compile(request["pattern"], request["flags"])
    return {"found": find(compiled, request["text"], request["full"], request["group"], request["take"])}


def find(compiled: re.Pattern[str], text: str, full: bool, group: int | str | None, take: str) -> str | None:
    """The `group` of the first or last match of `compiled` in `text`; None when there is none.

    `group=None` is the first group if the pattern has one, else the whole match.
    """
    match: re.Match[str] | None = None
    if full:
        match = compiled.fullmatch(text)
    elif take == "first":
        match = compiled.search(text)
    else:
        for match in compiled.finditer(text):  # noqa: B007
            pass
    if match is None:
        return None
    found: str | None = match.group((1 if compiled.groups else 0) if group is None else group)
    return found


def _schema(request: dict[str, Any]) -> dict[str, Any]:
    from jsonschema import Draft202012Validator
    from referencing import Registry

    validator = Draft202012Validator(request["schema"], registry=Registry())
    errors = sorted(validator.iter_errors(request["instance"]), key=lambda error: list(map(str, error.absolute_path)))
    return {"errors": [[error.json_path, error.message] for error in errors]}


def _math(request: dict[str, Any]) -> dict[str, Any]:
    label, answer = _parse(request["label"]), _parse(request["answer"])
    if not label:
        return {"label_read": False}
    if not answer:
        return {"label_read": True, "answer_read": False, "equal": False}
    equal = import_module("math_verify").verify(label, answer, timeout_seconds=None) or _close(
        label, answer, request["tolerance"]
    )
    return {"label_read": True, "answer_read": True, "equal": bool(equal)}


def _parse(text: str) -> list[Any]:
    """What math-verify reads in `text`, as LaTeX; empty when it found no mathematics."""
    math_verify = import_module("math_verify")
    # No time limits of the library's own: they are signals, and the parent kills this process anyway.
    config = [math_verify.LatexExtractionConfig()]
    found = math_verify.parse(f"\\boxed{{{text}}}", extraction_config=config, parsing_timeout=None)
    return found if any(not isinstance(item, str) for item in found) else []


def _close(label: list[Any], answer: list[Any], tolerance: float) -> bool:
    """Whether both are numbers within the relative `tolerance` of the label."""
    sympy = import_module("sympy")
    if not tolerance or not all(isinstance(side[0], sympy.Expr) for side in (label, answer)):
        return False
    difference, size = sympy.N(sympy.Abs(label[0] - answer[0])), sympy.N(sympy.Abs(label[0]))
    return bool(difference.is_number and size.is_number and difference <= tolerance * size)


_KINDS = {"load": _load, "find": _find, "json_schema": _schema, "math": _math}

if __name__ == "__main__":
    main()
