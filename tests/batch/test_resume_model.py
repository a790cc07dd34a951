"""Random sequences of commands on one run, against a model of it in plain dicts that shares no code with the runner.

After every command: who was played, who was graded, what each row and attempt holds, every number of the summary, and
that `plan` had said so beforehand.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from runner.batch.export.formats import Count, Selection, export
from runner.batch.options import RunOptions
from runner.batch.past_run import PastRun
from runner.batch.regrade import regrade
from runner.batch.run import Control, evaluate, plan_run
from runner.batch.standing import Standing
from runner.build.plan import Plan, build
from runner.config.load import load

AGENT = """
from pathlib import Path
from runner import AgentWorkflow

HERE = Path(__file__).parent

class Agent(AgentWorkflow):
    async def run(self, ctx):
        row = ctx.metadata
        with (HERE / "played.txt").open("a") as file:
            file.write(f"{row['id']} {ctx.attempt}\\n")
        if row["kind"] == "flaky" and (HERE / "storm").exists():
            raise RuntimeError("the line is down")
        await ctx.chat(ctx.prompt)
"""

JUDGING = """
from pathlib import Path

HERE = Path(__file__).parent

def judge(solution_str, ground_truth, extra_info, version):
    with (HERE / "judged.txt").open("a") as file:
        file.write(solution_str + "\\n")
    if solution_str.lower().startswith("odd") and (HERE / "storm").exists():
        raise RuntimeError("the judge is asleep")
    return ((len(solution_str) + version) % 3) / 2
"""

UNGRADABLE = ("failed", "cancelled")
KINDS = ("easy", "flaky", "odd", "plain")


@dataclass(frozen=True)
class Row:
    id: str
    n: int
    kind: str

    def json(self) -> dict[str, Any]:
        return {"id": self.id, "n": self.n, "kind": self.kind}


@dataclass(frozen=True)
class Grading:
    ignore_case: bool = False
    version: int = 0
    combine: str = "weighted_mean"
    label: int = 0
    extra: bool = False


@dataclass(frozen=True)
class File:
    """What stands in workflow.toml. `prompt` is a result key, `grading` the grade keys, the rest is operational."""

    prompt: int = 0
    grading: Grading = Grading()
    attempts: int = 1
    rows: tuple[Row, ...] = ()
    limit: int | None = None
    only: tuple[int, ...] | None = None
    group_by: bool = False
    threshold: float = 1.0
    concurrency: int = 1
    tokens: int | None = None

    @property
    def selected(self) -> list[Row]:
        rows = [row for place, row in enumerate(self.rows) if self.only is None or place in self.only]
        return rows if self.limit is None else rows[: self.limit]

    def text(self) -> str:
        grading = self.grading
        lines = [
            '[workflow]\nname = "sums"\nagent = "./agent.py:Agent"',
            f'user = "v{self.prompt} {{{{ row.n }}}}"',
            f'label = "{{{{ row.kind }}}} {"{{ row.n % 3 }}" if grading.label == 0 else "0"}"',
            '[model]\nid = "scripted/pupil"\nprovider = "scripted"',
            '[[model.rules]]\nreply = "{{ row.kind | upper if row.n % 2 else row.kind }} '
            '{{ (row.n + attempt + (last[1] | int)) % 3 }}"',
            f'[graders.answer]\nkind = "exact"\nignore_case = {str(grading.ignore_case).lower()}',
            f'[graders.dear]\nkind = "python"\ncall = "./judging.py:judge"\nconfig = {{ version = {grading.version} }}',
            '[graders.extra]\nkind = "contains"\nexpect = "1"' if grading.extra else "",
            f'[reward]\ncombine = "{grading.combine}"',
            '[dataset]\npath = "rows.jsonl"\nid = "id"',
            "" if self.limit is None else f"limit = {self.limit}",
            "" if self.only is None else f'rows = "{",".join(map(str, self.only))}"',
            f"[eval]\nattempts = {self.attempts}\nconcurrency = {self.concurrency}\nbreaker = 0\nmax_failed = 1.0",
            f"pass_threshold = {self.threshold}",
            'group_by = ["kind"]' if self.group_by else "",
            "" if self.tokens is None else f"[eval.budget]\ntokens = {self.tokens}",
        ]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Held:
    """What the model says that one row and attempt holds."""

    row: Row
    attempt: int
    prompt: int
    grading: Grading
    status: str
    label: str = ""
    scores: dict[str, float | None] = field(default_factory=dict)
    reward: float | None = None

    @property
    def key(self) -> tuple[str, int]:
        return self.row.id, self.attempt

    @property
    def reply(self) -> str:
        kind = self.row.kind.upper() if self.row.n % 2 else self.row.kind
        return f"{kind} {(self.row.n + self.attempt + self.prompt) % 3}"


def label_of(row: Row, grading: Grading) -> str:
    return f"{row.kind} {row.n % 3 if grading.label == 0 else 0}"


def graded(held: Held, grading: Grading, label: str, keep: set[str], storm: bool) -> tuple[Held, int]:
    """The rollout with its grades, and how often the counting grader was asked."""
    reply = held.reply
    same = reply.lower() == label.lower() if grading.ignore_case else reply == label
    fresh: dict[str, float | None] = {"answer": float(same)}
    fresh["dear"] = None if storm and held.row.kind == "odd" else ((len(reply) + grading.version) % 3) / 2
    if grading.extra:
        fresh["extra"] = float("1" in reply)
    kept = {name for name in keep if held.scores.get(name) is not None}
    scores = {name: held.scores[name] if name in kept else value for name, value in fresh.items()}
    known = [value for value in scores.values() if value is not None]
    reward = None
    if len(known) == len(scores):
        reward = fmean(known) if grading.combine == "weighted_mean" else min(known)
    status = "scored" if reward is not None else "ungraded"
    made = replace(held, grading=grading, label=label, scores=scores, reward=reward, status=status)
    return made, int("dear" not in kept)


def stands(before: Grading, now: Grading) -> set[str]:
    """The graders whose scores a change from one grading to the other leaves alone."""
    if before.label != now.label:
        return set()
    touched = set()
    if before.ignore_case != now.ignore_case:
        touched.add("answer")
    if before.version != now.version:
        touched.add("dear")
    if before.extra != now.extra:
        touched.add("extra")
    return {"answer", "dear", "extra"} - touched


@dataclass
class Owed:
    """What a command must do: each row and attempt with what it will hold, and how often the judge is asked for it."""

    counts: Counter[str] = field(default_factory=Counter)
    play: dict[tuple[str, int], tuple[Held, int]] = field(default_factory=dict)
    regrade: dict[tuple[str, int], tuple[Held, int]] = field(default_factory=dict)
    rowless: int = 0


class Watch:
    """Stops, or kills, the command after so many outcomes."""

    def __init__(self, after: int | None, control: Control | None, crash: bool) -> None:
        self.after, self.control, self.crash = after, control, crash
        self.moves = 0
        self.stopped = False
        self.last: Standing | None = None

    def began(self, standing: Standing) -> None: ...

    def moved(self, standing: Standing) -> None:
        self.moves += 1
        if self.after is not None and self.moves >= self.after:
            if self.crash:
                raise Killed
            if self.control is not None and not self.control.interrupted:
                self.control.interrupt()

    def told(self, text: str) -> None:
        self.stopped = self.stopped or text.startswith("stopping: ")

    def ended(self, standing: Standing) -> None:
        self.last = standing


class Killed(Exception):
    """Stands for the process's end: nothing after it is written."""


class Run(RuleBasedStateMachine):
    """One run folder, and what the model says it holds."""

    folder: Path

    @initialize(rows=st.integers(1, 8), attempts=st.integers(1, 3))
    def begin(self, rows: int, attempts: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="resume-model-"))
        (self.folder / "agent.py").write_text(AGENT)
        (self.folder / "judging.py").write_text(JUDGING)
        self.made = rows
        self.file = File(attempts=attempts, rows=tuple(Row(f"q{n}", n, KINDS[n % 4]) for n in range(rows)))
        self.lines: list[Held] = []
        self.safe = 0  # bytes of the journal that earlier commands wrote
        self.about: File | None = None
        self.finished = True
        self.archives = 0

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    # --- the world changes

    @rule(prompt=st.integers(0, 2))
    def change_a_result_key(self, prompt: int) -> None:
        self.file = replace(self.file, prompt=prompt)

    @rule(change=st.sampled_from(["ignore_case", "version", "combine", "label", "extra"]))
    def change_a_grade_key(self, change: str) -> None:
        old = self.file.grading
        new = {
            "ignore_case": replace(old, ignore_case=not old.ignore_case),
            "version": replace(old, version=(old.version + 1) % 3),
            "combine": replace(old, combine="min" if old.combine != "min" else "weighted_mean"),
            "label": replace(old, label=1 - old.label),
            "extra": replace(old, extra=not old.extra),
        }[change]
        self.file = replace(self.file, grading=new)

    @rule(
        attempts=st.integers(1, 3),
        concurrency=st.sampled_from([1, 4]),
        threshold=st.sampled_from([0.5, 1.0]),
        group_by=st.booleans(),
    )
    def change_how_it_runs(self, attempts: int, concurrency: int, threshold: float, group_by: bool) -> None:
        self.file = replace(
            self.file, attempts=attempts, concurrency=concurrency, threshold=threshold, group_by=group_by
        )

    @rule(place=st.integers(0, 8), how=st.sampled_from(["change", "add", "remove"]))
    def change_the_rows(self, place: int, how: str) -> None:
        rows = list(self.file.rows)
        place %= len(rows)
        old = rows[place]
        if how == "change":
            rows[place] = replace(old, n=(old.n + 1) % 12)
        elif how == "add" and len(rows) < 9:
            rows.insert(place, Row(f"q{self.made}", self.made, KINDS[self.made % 4]))
            self.made += 1
        elif how == "remove" and len(rows) > 1:
            del rows[place]
        self.file = replace(
            self.file, rows=tuple(rows), only=self.file.only if len(rows) == len(self.file.rows) else None
        )

    @rule(limit=st.none() | st.integers(1, 4), only=st.none() | st.sets(st.integers(0, 7), min_size=1))
    def select_rows(self, limit: int | None, only: set[int] | None) -> None:
        there = None if only is None else tuple(sorted({place % len(self.file.rows) for place in only}))
        self.file = replace(self.file, limit=limit, only=there)

    @rule(storm=st.booleans())
    def weather(self, storm: bool) -> None:
        (self.folder / "storm").touch() if storm else (self.folder / "storm").unlink(missing_ok=True)

    @rule(share=st.floats(0, 1))
    def cut_the_journal(self, share: float) -> None:
        """As if the last command had been killed earlier: lines of it are missing, and one may be torn."""
        if not self.journal.exists():
            return
        content = self.journal.read_bytes()
        safe = min(self.safe, len(content))
        cut = content[: safe + int(share * (len(content) - safe))]
        time.sleep(0.01)  # no power failure comes within the clock tick that wrote the summary
        self.journal.write_bytes(cut)
        self.lines = self.lines[: cut.count(b"\n")]
        self.finished = self.finished and len(cut) == len(content)

    # --- commands

    @rule(
        retry_failed=st.booleans(),
        fresh=st.sampled_from([False, False, False, False, True]),
        after=st.none() | st.integers(1, 6),
        how=st.sampled_from(["interrupt", "kill", "budget"]),
    )
    def evaluate(self, retry_failed: bool, fresh: bool, after: int | None, how: str) -> None:
        self.command(retry_failed, fresh, after, how)

    def command(self, retry_failed: bool = False, fresh: bool = False, after: int | None = None, how: str = "") -> None:
        """`eval`, stopped or killed after so many outcomes, or by so many tokens; what it did is checked."""
        if fresh and self.about is not None:
            self.archives += 1
        if fresh:
            self.lines, self.about = [], None
        owed = self.owed(retry_failed)
        if after is not None and how == "budget":
            self.file = replace(self.file, tokens=after * 12)
        plan = self.plan()
        options = RunOptions(retry_failed=retry_failed, fresh=fresh, output=self.folder / "runs")
        told, _ = plan_run(plan, options)
        rows = self.file.selected
        assert told.to_json() == {
            "rows": len(rows), "attempts": self.file.attempts, "total": len(rows) * self.file.attempts,
            **{name: owed.counts[name] for name in ("reuse", "regrade", "rerun", "new")}, "reasons": told.reasons,
        }  # fmt: skip
        assert not any("because ." in reason or "does not remember" in reason for reason in told.reasons)
        control = Control()
        watch = Watch(after if how != "budget" else None, control, how == "kill")
        before = self.noted()
        self.safe = 0 if not self.lines else self.journal.read_bytes().rfind(b"\n") + 1
        try:
            result = asyncio.run(evaluate(plan, options, watch, control))
        except Killed:
            result = None
        self.about = self.file
        self.take_in(owed, before, complete=result is not None and not watch.stopped)
        self.finished = result is not None
        self.file = replace(self.file, tokens=None)
        if result is not None:
            self.check_summary(dict(result.summary))
            assert watch.last is not None
            if not watch.stopped:
                assert watch.last.done == len(rows) * self.file.attempts
                assert watch.last.reused == owed.counts["reuse"]
                assert watch.last.reward.value == pytest.approx(self.mean())

    @rule()
    def go_on(self) -> None:
        """The same command again, to its end: nothing is owed after it."""
        self.command()
        assert self.owed(False).counts.keys() <= {"reuse"}

    @rule(everything=st.booleans())
    def regrade(self, everything: bool) -> None:
        if self.about is None:
            return
        plan, run = self.plan(), self.folder / "runs" / "sums"
        owed = self.owed_grades(everything)
        before = self.noted()
        self.safe = 0 if not self.lines else self.journal.read_bytes().rfind(b"\n") + 1
        counted = len(self.counting(any_grading=True))
        changed = [held for held, _ in owed.regrade.values() if held.reward != self.holds()[held.key].reward]
        result, count = asyncio.run(regrade(plan, run, everything=everything))
        self.about = replace(self.about, grading=self.file.grading, threshold=self.file.threshold)
        self.take_in(owed, before, complete=True)
        assert (count.graded, count.rowless) == (len(owed.regrade), owed.rowless)
        assert count.kept == counted - count.graded
        assert count.changed == len(changed)
        self.finished = True
        self.check_summary(dict(result.summary))

    # --- what must be true after each of them

    @invariant()
    def a_reader_sees_what_the_model_says(self) -> None:
        if not hasattr(self, "folder") or self.about is None:
            return
        past = PastRun.open(self.folder / "runs" / "sums")
        summary = past.folder.summary()
        if summary is None or past.is_newer_than_summary():
            summary = past.summary("the run has not ended, or was killed")
        else:
            assert self.finished
        self.check_summary(summary)
        self.check_summary(past.summary())
        counting = {held.key: held for held in self.counting()}
        records = {(record["row_id"], record["attempt"]): record for record in past.in_order()}
        assert len(records) == len(list(past.in_order()))
        assert records.keys() == counting.keys()
        for key, record in records.items():
            self.check_record(record, counting[key])
        scored = [held for held in counting.values() if held.status == "scored"]
        count = Count()
        rows = [json.loads(line) for line in export(past.in_order(), "jsonl", [], Selection(), count)]
        assert sorted((row["row_id"], row["attempt"]) for row in rows) == sorted(held.key for held in scored)
        assert count.written + sum(count.dropped.values()) == len(counting)

    # --- the model

    @property
    def journal(self) -> Path:
        return self.folder / "runs" / "sums" / "rollouts.jsonl"

    def plan(self) -> Plan:
        (self.folder / "workflow.toml").write_text(self.file.text())
        (self.folder / "rows.jsonl").write_text("".join(json.dumps(row.json()) + "\n" for row in self.file.rows))
        return build(load(self.folder / "workflow.toml"))

    def noted(self) -> tuple[Counter[str], Counter[str]]:
        """Who was played and what was judged, as the agent and the grader themselves wrote it down."""
        made = []
        for name in ("played.txt", "judged.txt"):
            path = self.folder / name
            made.append(Counter(path.read_text().splitlines() if path.exists() else []))
        return made[0], made[1]

    def holds(self) -> dict[tuple[str, int], Held]:
        return {held.key: held for held in self.lines}

    @property
    def storm(self) -> bool:
        return (self.folder / "storm").exists()

    def played(self, row: Row, attempt: int) -> tuple[Held, int]:
        grading = self.file.grading
        held = Held(row, attempt, self.file.prompt, grading, "failed", label_of(row, grading))
        if row.kind == "flaky" and self.storm:
            return held, 0
        return graded(held, grading, held.label, set(), self.storm)

    def owed(self, retry_failed: bool) -> Owed:
        owed, holds, grading = Owed(), self.holds(), self.file.grading
        for row in self.file.selected:
            for attempt in range(self.file.attempts):
                held = holds.get((row.id, attempt))
                if held is None or held.status == "cancelled":
                    choice = "new"
                elif held.prompt != self.file.prompt or held.row != row or (held.status == "failed" and retry_failed):
                    choice = "rerun"
                elif held.status != "failed" and (
                    held.grading != grading or (held.status == "ungraded" and retry_failed)
                ):
                    choice = "regrade"
                else:
                    choice = "reuse"
                owed.counts[choice] += 1
                if choice in ("new", "rerun"):
                    owed.play[row.id, attempt] = self.played(row, attempt)
                elif choice == "regrade" and held is not None:
                    keep = stands(held.grading, grading)
                    owed.regrade[row.id, attempt] = graded(held, grading, label_of(row, grading), keep, self.storm)
        return owed

    def owed_grades(self, everything: bool) -> Owed:
        owed, now = Owed(), self.file.grading
        rows = set(self.file.selected)
        for held in self.counting(any_grading=True):
            if held.status in UNGRADABLE or not (everything or held.grading != now):
                continue
            label = label_of(held.row, now) if held.row in rows else held.label
            keep = set() if everything else stands(held.grading, now)
            owed.rowless += held.row not in rows
            owed.regrade[held.key] = graded(held, now, label, keep, self.storm)
        return owed

    def take_in(self, owed: Owed, before: tuple[Counter[str], Counter[str]], *, complete: bool) -> None:
        """The journal's new lines against what was owed; they are what the model holds from now on."""
        text = self.journal.read_bytes() if self.journal.exists() else b""
        whole = text[: text.rfind(b"\n") + 1].splitlines()
        new = [json.loads(line) for line in whole[len(self.lines) :]]
        expected = {**owed.play, **owed.regrade}
        asked, seen = 0, []
        for record in new:
            key = record["row_id"], record["attempt"]
            held, calls = expected[key]
            if record["outcome"] == "cancelled":
                assert not complete
                held = replace(held, status="cancelled", scores={}, reward=None)
            self.check_record(record, held)
            assert bool(record.get("regraded")) == (key in owed.regrade)
            asked += calls
            seen.append(held)
        assert len({held.key for held in seen}) == len(seen)
        played, judged = self.noted()
        done = Counter(f"{held.row.id} {held.attempt}" for held in seen if held.key in owed.play)
        if complete:
            assert {held.key for held in seen} == expected.keys()
        if complete or self.file.concurrency == 1:
            assert played - before[0] == done
            assert (judged - before[1]).total() == asked
        self.lines += seen

    def check_record(self, record: dict[str, Any], held: Held) -> None:
        assert record["outcome"] == held.status, (record["outcome"], record["failure"], record["stop_reason"], held)
        assert record["reward"] == (None if held.reward is None else pytest.approx(held.reward))
        assert {name: score["value"] for name, score in record["scores"].items()} == held.scores
        assert held.status in UNGRADABLE or record["messages"][-1]["content"] == held.reply
        assert record["label"] == held.label

    def counting(self, *, any_grading: bool = False) -> list[Held]:
        """What the run is about: what the last command asked for, under its configuration."""
        about = self.about
        assert about is not None
        rows = set(about.selected)
        return [
            held for held in self.holds().values()
            if held.row in rows and held.attempt < about.attempts and held.prompt == about.prompt
            and (any_grading or held.status in UNGRADABLE or held.grading == about.grading)
        ]  # fmt: skip

    def mean(self) -> float | None:
        rewards = [held.reward for held in self.counting() if held.reward is not None]
        return fmean(rewards) if rewards else None

    def check_summary(self, summary: dict[str, Any]) -> None:
        about, counting = self.about, self.counting()
        assert about is not None
        planned = len(about.selected) * about.attempts
        assert summary["rollouts"] == {
            "planned": planned, "recorded": len(counting), "missing": planned - len(counting),
        }  # fmt: skip
        statuses = Counter(held.status for held in counting)
        assert summary["outcomes"] == {name: statuses[name] for name in ("scored", "ungraded", "failed", "cancelled")}
        every = len(counting) == planned and not statuses["cancelled"]
        assert summary["complete"] == (every and not summary["stopped"])
        scored = [held for held in counting if held.reward is not None]
        assert summary["reward"]["n"] == len(scored)
        assert summary["reward"]["rows"] == len({held.row.id for held in scored})
        mean = self.mean()
        assert summary["reward"]["mean"] == (None if mean is None else pytest.approx(mean))
        self.check_pass_at(summary, scored, about)
        for name, found in summary["graders"].items():
            values = [held.scores[name] for held in counting if held.scores.get(name) is not None]
            assert found["n"] == len(values)
            assert found["mean"] == (pytest.approx(fmean(values)) if values else None)  # type: ignore[type-var]
        groups = summary["groups"].get("kind", {})
        if about.group_by:
            kinds = {held.row.kind for held in counting}
            assert groups.keys() == kinds
            for kind, group in groups.items():
                rewards = [held.reward for held in scored if held.row.kind == kind]
                assert group["rows"] == len({held.row.id for held in counting if held.row.kind == kind})
                assert group["reward"]["mean"] == (pytest.approx(fmean(rewards)) if rewards else None)
        else:
            assert not groups

    def check_pass_at(self, summary: dict[str, Any], scored: list[Held], about: File) -> None:
        passes: dict[str, list[bool]] = {}
        for held in scored:
            passes.setdefault(held.row.id, []).append(held.reward is not None and held.reward >= about.threshold)
        most = max((len(found) for found in passes.values()), default=0)
        steps = [k for k in {1: [1], 2: [1, 2], 3: [1, 2, 3]}[about.attempts] if k <= most]
        for name, how in (("pass_at", any), ("pass_all", all)):
            assert [int(k) for k in summary[name]] == steps
            for k in steps:
                chances = [fmean(map(how, itertools.combinations(found, k)))
                           for found in passes.values() if len(found) >= k]  # fmt: skip
                assert summary[name][str(k)]["value"] == pytest.approx(fmean(chances))


def test_any_sequence_of_commands_keeps_every_promise() -> None:
    run_state_machine_as_test(
        Run,
        settings=settings(
            max_examples=25,
            stateful_step_count=18,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],  # a sequence of 18 commands can be read; making it shorter takes minutes
            suppress_health_check=list(HealthCheck),
        ),
    )
