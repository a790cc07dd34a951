"""What stands for a model: it works as one does, and knows beforehand what it will try. `answer` is the model.

It looks around, runs the tests, reads a file, changes it, runs the tests again, tries something else while they fail,
and finishes. What it tries is in `PLANS`: most of it is right at once, some is right the second time, and some is wrong
in the ways in which models are wrong. Whether a repository is mended nobody knows but its tests.
"""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Edit:
    """A call of the editor: `old` is replaced by `new` in the file `path`."""

    path: str
    old: str
    new: str

    def call(self) -> tuple[str, dict[str, Any]]:
        return "editor", {"command": "str_replace", "path": self.path, "old_str": self.old, "new_str": self.new}


@dataclass(frozen=True)
class Plan:
    """`look` is what it searches for, `reads` the files it reads, `tries` are the edits, tested one after the other."""

    look: str
    reads: tuple[str, ...]
    tries: tuple[Edit, ...]
    says: str
    tests: bool = True
    """Whether it runs the tests after an edit."""


PLANS = {
    "semver": Plan(
        "def key",
        ("semver/version.py",),
        (
            Edit(
                "semver/version.py",
                'return cls(found[1], found[2], found[3], found[4] or "")',
                'return cls(int(found[1]), int(found[2]), int(found[3]), found[4] or "")',
            ),
        ),
        "The parts of a version were compared as texts; they are numbers now.",
    ),
    "stock": Plan(
        "split(",
        ("stock/reading.py", "tests/test_reading.py"),
        (
            Edit(
                "stock/reading.py",
                """    for number, line in enumerate(lines):
        line = line.strip()
        if number == 0 or not line:
            continue
        name, price, count = line.split(",")
""",
                """    for number, fields in enumerate(csv.reader(lines)):
        if number == 0 or not fields:
            continue
        name, price, count = fields
""",
            ),
            Edit("stock/reading.py", "from stock.item", "import csv\n\nfrom stock.item"),
        ),
        "Lines are read by the csv module, which knows of quotes.",
    ),
    "lru": Plan(
        "popitem",
        ("lru.py",),
        (
            Edit(
                "lru.py", "        self.hits += 1\n", "        self.hits += 1\n        self._entries.move_to_end(key)\n"
            ),
        ),
        "Reading an entry moves it to the end, as writing does.",
    ),
    "sessions": Plan(
        "def purge",
        ("sessions/store.py",),
        (Edit("sessions/store.py", "in self._sessions.items():", "in list(self._sessions.items()):"),),
        "The purge goes over a copy, so that it may remove what it finds.",
    ),
    "intervals": Plan(
        "def merged",
        ("intervals.py",),
        (Edit("intervals.py", "(result[-1][0], end)", "(result[-1][0], max(result[-1][1], end))"),),
        "A span that ends inside of another no longer cuts it short.",
    ),
    "months": Plan(
        "day.day",
        ("months/adding.py", "months/billing.py"),
        (
            Edit("months/adding.py", "month % 12 + 1, day.day)", "month % 12 + 1, min(day.day, 28))"),  # not enough
            Edit(
                "months/adding.py",
                """    return date(day.year + month // 12, month % 12 + 1, min(day.day, 28))""",
                """    year, month = day.year + month // 12, month % 12 + 1
    return date(year, month, min(day.day, monthrange(year, month)[1]))""",
            ),
            Edit("months/adding.py", "from datetime", "from calendar import monthrange\nfrom datetime"),
        ),
        "The day is at most the last one of the month.",
    ),
    "slug": Plan(
        "ascii",
        ("slug.py",),
        (
            Edit("slug.py", "import re\n", "import re\nimport unicodedata\n"),
            Edit(
                "slug.py",
                'title.encode("ascii", "ignore")',
                'unicodedata.normalize("NFKD", title).encode("ascii", "ignore")',
            ),
        ),
        "Letters are taken apart from their accents before what is not ASCII is dropped.",
    ),
    "bill": Plan(  # It cannot find out how, and changes what the tests expect.
        "def shares",
        ("bill.py", "tests/test_bill.py"),
        (
            Edit("bill.py", "each = round(cents(total) / people)", "each = -(-cents(total) // people)"),
            Edit("tests/test_bill.py", '["3.34", "3.33", "3.33"]', '["3.34", "3.34", "3.34"]'),
            Edit(
                "tests/test_bill.py",
                "self.assertEqual(sum(map(cents, shares(total, people))), cents(total))",
                "self.assertGreaterEqual(sum(map(cents, shares(total, people))), cents(total))",
            ),
        ),
        "Shares are rounded up now, and all tests pass.",
    ),
    "flatten": Plan(
        "enumerate",
        ("flatten.py",),
        (
            Edit(
                "flatten.py",
                "        return value.items()\n",
                "        return value.items()\n    if isinstance(value, str):\n        return None\n",
            ),
        ),
        "A text is a value, not a list of letters.",
    ),
    "pages": Plan(
        "def count",
        ("pages/paging.py", "tests/test_paging.py"),
        (Edit("pages/paging.py", "len(self.items) // self.size + 1", "(len(self.items) - 1) // self.size + 1"),),
        "Full pages were followed by an empty one.",
    ),
    "events": Plan(
        "listeners=",
        ("events/bus.py",),
        (
            Edit(
                "events/bus.py",
                """listeners={}):
        self.name = name
        self.listeners = listeners
""",
                """listeners=None):
        self.name = name
        self.listeners = {} if listeners is None else listeners
""",
            ),
        ),
        "The default was one table for all buses.",
    ),
    "wordcount": Plan(
        "--least",
        ("wordcount/command.py",),
        (Edit("wordcount/command.py", '"--least", default=1', '"--least", type=int, default=1'),),
        "The option was a text.",
    ),
    "ini": Plan(
        'split("=")',
        ("ini.py",),
        (
            Edit("ini.py", "line.split('=')", "line.split('=', 1)"),  # not as it is written there
            Edit("ini.py", 'line.split("=")', 'line.split("=", 1)'),
        ),
        "Only the first equals sign separates.",
    ),
    "search": Plan(
        "first_at_least",
        ("bounds.py",),
        (
            Edit("bounds.py", "while low < high:", "while low <= high:"),  # which never ends
            Edit("bounds.py", "while low <= high:", "while low < high:"),
            Edit("bounds.py", "low, high = 0, len(values) - 1", "low, high = 0, len(values)"),
        ),
        "The upper bound is one past the last value.",
    ),
    "grid": Plan(  # One row is copied, the others are still one and the same.
        "self.cells =",
        ("grid.py", "mines.py"),
        (Edit("grid.py", "[[value] * width] * height", "[[value] * width, *[[value] * width] * (height - 1)]"),),
        "The first row is a list of its own now, so a mine in it appears nowhere else.",
        tests=False,
    ),
    "durations": Plan(
        "_PART",
        ("durations.py",),
        (Edit("durations.py", '"|".join(SECONDS)', '"|".join(sorted(SECONDS, key=len, reverse=True))'),),
        "Longer units are tried first, so `ms` is no longer `m` and something.",
    ),
    "order": Plan(  # The right place, the wrong thing; then it gives up.
        "break",
        ("order.py",),
        (
            Edit("order.py", "            break\n", "            raise ValueError('a circle')\n"),
            Edit("order.py", "raise ValueError('a circle')", "raise Circle(sorted(needs))"),
        ),
        "Tasks that wait for each other are an error now.",
    ),
    "menu": Plan(
        "lambda",
        ("menu.py",),
        (
            Edit("menu.py", "lambda: sell(name, price)", "lambda: sell(fare, price)"),  # half a thought
            Edit("menu.py", "lambda: sell(fare, price)", "lambda name=name, price=price: sell(name, price)"),
        ),
        "Each button remembers its own fare.",
    ),
    "wrap": Plan(
        "def wrap",
        ("wrap.py",),
        (
            Edit("wrap.py", "    return lines\n", "    if line:\n        lines.append(line)\n    return lines\n"),
            Edit("wrap.py", 'line = f"{line} {word}"', 'line = f"{line} {word}" if line else word'),
        ),
        "The last line is kept, and the first word has no space before it.",
    ),
    "truncate": Plan(  # Looks, and leaves it.
        "def cut",
        ("cut.py", "fields.py", "tests/test_fields.py"),
        (),
        "I could not find out where the bytes are counted.",
    ),
    "html": Plan(
        "&amp;",
        ("page/escaping.py", "page/element.py"),
        (
            Edit(
                "page/escaping.py",
                """{"<": "&lt;", ">": "&gt;", '"': "&quot;", "&": "&amp;"}""",
                """{"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}""",
            ),
        ),
        "The ampersand is replaced first, before the others bring new ones.",
    ),
    "utc": Plan(  # Turned the wrong way, and never tested.
        "def to_utc",
        ("utc.py",),
        (
            Edit(
                "utc.py",
                "    return time.replace(tzinfo=timezone.utc)\n",
                "    return (time + time.utcoffset()).replace(tzinfo=timezone.utc)\n",
            ),
        ),
        "The offset of the zone is taken into account.",
        tests=False,
    ),
}


def answer(messages: list[dict[str, Any]], row: dict[str, Any]) -> dict[str, Any]:
    """The next message, by what was done so far and how it went."""
    plan = PLANS[row["repo"]]
    test = ("bash", {"command": row["test_command"], "timeout": 3})
    turn = sum(message["role"] == "assistant" for message in messages)
    if turn == 0:
        look = ("search", {"command": "search_text", "pattern": plan.look})
        return _called([("editor", {"command": "view", "path": "."}), look], turn)
    if turn == 1:
        return _called([*(("editor", {"command": "view", "path": path}) for path in plan.reads), test], turn)
    last = str(messages[-1]["content"]).rstrip()
    if plan.tests and last.startswith("Edited"):
        return _called([test], turn)
    tried = sum(_is_edit(call) for message in messages for call in message.get("tool_calls") or [])
    mended = last.endswith("OK")
    if tried < len(plan.tries) and not mended:
        return _called([plan.tries[tried].call()], turn)
    status = "success" if mended or not plan.tests else "failed"
    return _called([("finish", {"answer": plan.says, "status": status})], turn)


def _is_edit(call: dict[str, Any]) -> bool:
    return "str_replace" in call["function"]["arguments"]


def _called(calls: list[tuple[str, dict[str, Any]]], turn: int) -> dict[str, Any]:
    """An assistant message with tool calls."""
    functions = [
        {"name": name, "arguments": json.dumps(arguments)}  # as an endpoint sends it: arguments are a text
        for name, arguments in calls
    ]
    made = [{"id": f"call_{turn}_{at}", "type": "function", "function": each} for at, each in enumerate(functions)]
    return {"role": "assistant", "content": None, "tool_calls": made}
