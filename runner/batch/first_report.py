"""A run as the JSON report that the first generation's `eval -o` wrote.

Its shape is theirs. Its numbers are ours: a run that failed, or that a function could not score, has no score and
counts in no mean, where that generation counted 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, pstdev
from typing import Any

from runner.batch.past_run import PastRun, Record
from runner.batch.statistics import pass_at

_KS = (1, 3, 5, 10)
REWARD = "reward"
"""What the agent's own reward is called where nothing else scores."""


def first_report(
    run: PastRun,
    config: Mapping[str, Any],
    paths: Mapping[str, str],
    *,
    stopped: str = "",
    baseline: PastRun | None = None,
    models: tuple[str, str] = ("", ""),
) -> dict[str, Any]:
    """The report of `run`, beside which a `baseline` may stand; `models` are what the two are called.

    `paths` are the eval functions by the names of their graders; a grader of another name is reported by its name.
    """
    threshold = float(run.manifest.get("pass_threshold", 1.0))
    tagged = [("primary", run)] if baseline is None else [("primary", run), ("baseline", baseline)]
    runs = [(tag, _runs(each, paths, tag if baseline else "")) for tag, each in tagged]
    report: dict[str, Any] = {"config": dict(config), "summary": _summary(run, runs[0][1], threshold, stopped)}
    rows: dict[int, list[dict[str, Any]]] = {}
    for _, made in runs:
        for row, entry in made:
            rows.setdefault(row, []).append(entry)
    report["rows"] = [{"row_index": row, "runs": rows[row]} for row in sorted(rows)]
    if baseline is not None:
        report["model_summaries"] = [
            {"model": model, "model_tag": tag, **_figures(made, threshold)}
            for model, (tag, made) in zip(models, runs, strict=True)
        ]
    return report


_Run = tuple[int, dict[str, Any]]


def _runs(run: PastRun, paths: Mapping[str, str], tag: str) -> list[_Run]:
    return [(int(record["row"]), _entry(record, paths, tag)) for record in run.in_order()]


def _entry(record: Record, paths: Mapping[str, str], tag: str) -> dict[str, Any]:
    given = record["scores"] or {REWARD: {"value": record["reward"]}}
    scores = {paths.get(name, name): score["value"] for name, score in given.items() if score["value"] is not None}
    entry: dict[str, Any] = {
        "run_index": record["attempt"],
        "success": record["outcome"] in ("scored", "ungraded"),
        "scores": scores,
        "duration_ms": round(float(record["timing"].get("total", 0.0)) * 1000, 3),
        "tokens": record["usage"]["total_tokens"],
    }
    if tag:
        entry["model_tag"] = tag
    if record["failure"] is not None:
        entry["error"] = record["failure"]["message"]
    return entry


def _summary(run: PastRun, made: Sequence[_Run], threshold: float, stopped: str) -> dict[str, Any]:
    figures = _figures(made, threshold)
    total, tokens, spent = (figures.pop(name) for name in ("total_runs", "total_tokens", "total_duration_ms"))
    summary = {"total_rows": int(run.manifest["rows"]), "total_runs": total, "stopped_early": bool(stopped)}
    if stopped:
        summary["stop_reason"] = stopped
    return {**summary, **figures, "total_tokens": tokens, "total_duration_ms": spent}


def _figures(made: Sequence[_Run], threshold: float) -> dict[str, Any]:
    names = dict.fromkeys(name for _, entry in made for name in entry["scores"])
    return {
        "total_runs": len(made),
        "total_tokens": sum(entry["tokens"] for _, entry in made),
        "total_duration_ms": round(sum(entry["duration_ms"] for _, entry in made), 3),
        "eval_fns": {name: _figure(_by_row(made, name), threshold) for name in names},
    }


def _by_row(made: Iterable[_Run], name: str) -> list[list[float]]:
    rows: dict[int, list[float]] = {}
    for row, entry in made:
        if name in entry["scores"]:
            rows.setdefault(row, []).append(float(entry["scores"][name]))
    return list(rows.values())


def _figure(rows: Sequence[Sequence[float]], threshold: float) -> dict[str, float]:
    values = [value for row in rows for value in row]
    figure = {"mean": fmean(values), "std": pstdev(values), "min": min(values), "max": max(values)}
    most = max(map(len, rows))
    for k in _KS if most > 1 else ():
        enough = [row for row in rows if len(row) >= k]
        if enough:
            passed = [pass_at(len(row), sum(value >= threshold for value in row), k) for row in enough]
            figure[f"pass_at_{k}"] = fmean(passed)
    return figure
