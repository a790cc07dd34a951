"""Answers for `python -m runner.models.double`: a policy that computes GSM8K's answers from the dataset itself.

It finds the problem by its question and walks the `<<48/2=24>>` annotations of the solution, one calculator call a
turn; then it answers. One problem in ten, fixed by the CRC of its question, is answered wrongly by one on purpose, so
that a score of 100 % is never right: the true pass rate is `right_share()`.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(os.environ.get("GSM8K", Path(__file__).resolve().parents[3] / "shared" / "data" / "gsm8k" / "test.jsonl"))

_ANNOTATION = re.compile(r"<<([^=<>]+)=[^<>]*>>")


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The assistant message that answers an OpenAI chat request."""
    messages = request["messages"]
    question = next(_text(m) for m in messages if m["role"] == "user").strip()
    solution = _solutions().get(question)
    if solution is None:
        return {"role": "assistant", "content": "I do not know this problem.\n#### 0"}
    done = sum(m["role"] == "tool" for m in messages)
    steps = [] if not request.get("tools") else _ANNOTATION.findall(solution)
    if done < len(steps):
        return _calculate(steps[done], done)
    return {"role": "assistant", "content": f"{_plain(solution)}\n#### {_final(question, solution)}"}


def is_right(question: str) -> bool:
    """Whether the solver answers this question correctly: all but the tenth whose CRC ends in 0."""
    return zlib.crc32(question.strip().encode()) % 10 != 0


def right_share() -> float:
    """The share of all problems that the solver answers correctly."""
    questions = _solutions()
    return sum(map(is_right, questions)) / len(questions)


@cache
def _solutions() -> dict[str, str]:
    with DATA.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return {row["question"].strip(): row["answer"] for row in rows}


def _calculate(expression: str, number: int) -> dict[str, Any]:
    function = {"name": "calculator", "arguments": json.dumps({"expression": expression})}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _final(question: str, solution: str) -> str:
    number = solution.rpartition("####")[2].strip()
    return number if is_right(question) else str(int(number.replace(",", "")) + 1)


def _plain(solution: str) -> str:
    return re.sub(r"<<[^<>]*>>", "", solution.rpartition("####")[0]).strip()


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
