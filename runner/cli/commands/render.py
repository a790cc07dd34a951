"""`osmosis-run render`: the exact first request of a row, without sending it.

The agent itself is run, against a model that keeps what it is asked and answers nothing: what is printed is what would
be sent, also for an agent of the user's own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli.console import Style, console
from runner.cli.exit import CommandError, Exit
from runner.cli.options import build_plan, file_options, json_option

if TYPE_CHECKING:
    from runner.build.plan import Plan
    from runner.config.layers import Override
    from runner.datasets.dataset import Row
    from runner.records.completion import Caller, Sampling, ToolSpec
    from runner.records.message import Message
    from runner.records.rollout import RolloutRequest


@dataclass(frozen=True)
class Rendered:
    """The first request. `url` is empty when the model is not reached over the direct path."""

    request: RolloutRequest
    url: str
    body: dict[str, Any]


class _Listening:
    """A model that keeps the first thing it is asked, and refuses to answer."""

    def __init__(self) -> None:
        self.heard: tuple[Sequence[Message], Sequence[ToolSpec], Sampling] | None = None

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling, caller: Caller
    ) -> Any:
        from runner.records.failure import ModelRefused

        if self.heard is None:
            self.heard = (list(messages), list(tools), sampling)
        raise ModelRefused("rendered, not sent")

    async def aclose(self) -> None:
        return None


@click.command("render")
@click.argument("dataset", metavar="[DATASET]", required=False, type=click.Path(path_type=Path))
@click.option("--row", type=click.IntRange(min=0), help="Which row, by its place from 0. Default: the first.")
@click.option("--attempt", type=click.IntRange(min=0), default=0, show_default=True, help="Which attempt, from 0.")
@file_options
@json_option
def command(
    dataset: Path | None,
    row: int | None,
    attempt: int,
    workflow: Path,
    profile: str | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> Exit:
    """Print the exact first request that a row of DATASET (default: the file's) would send, without sending it."""
    import asyncio

    plan = build_plan(workflow, profile, overrides, _choice(dataset, row))
    request = plan.request(_row(plan, row), attempt)
    rendered = asyncio.run(_rendered(plan, request))
    if as_json:
        console().print_json(rendered.body)
    else:
        console().out(request_text(rendered, console().data))
    return Exit.OK


def _choice(dataset: Path | None, row: int | None) -> list[Override]:
    from runner.config.layers import Override

    chosen = [] if row is None else [Override.from_option("dataset.rows", str(row), f"--row {row}")]
    if dataset is not None:
        chosen.append(Override.from_option("dataset.path", str(dataset.absolute()), str(dataset)))
    return chosen


def _row(plan: Plan, row: int | None) -> Row:
    if plan.dataset is None:
        raise CommandError("the file names no dataset", "name one: `osmosis-run render DATASET`")
    for found in plan.dataset.rows():
        return found
    which = "no rows" if row is None else f"no row {row}"
    raise CommandError(f"`{plan.dataset.path}` has {which}", "rows are counted from 0")


async def _rendered(plan: Plan, request: RolloutRequest) -> Rendered:
    from runner.runtime.rollout import run_rollout

    model = _Listening()
    async with plan.open(model=model) as live:
        outcome = await run_rollout(live, request)
    if model.heard is None:
        why = f": {outcome.failure.message}" if outcome.failure else ""
        raise CommandError(f"the agent asked nothing before it ended ({outcome.stop_reason}){why}")
    url, body = _wire(plan, *model.heard)
    return Rendered(request, url, json.loads(body))


def _wire(plan: Plan, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling) -> tuple[str, bytes]:
    """Where the request would go and its body; without the direct path, the body in OpenAI form."""
    from runner.models.request import Options, request_body

    section = plan.config.model
    if section is not None and section.effective_provider == "openai" and plan.make_model is not None:
        from runner.models.chat import ChatModel

        model = plan.make_model()
        assert isinstance(model, ChatModel)
        return model.url, model.body(messages, tools, sampling)
    return "", request_body((section and section.id) or "", messages, tools, sampling, Options())


def request_text(rendered: Rendered, style: Style) -> str:
    """The request as a person reads it; nothing of a row may steer the terminal."""
    from runner.batch.transcript import safe

    request, body = rendered.request, rendered.body
    target = f"POST {rendered.url}" if rendered.url else "the request in OpenAI form"
    lines = [
        f"{style.bold(target)}",
        style.dim(f"row {request.row_index} ({safe(request.row_id)}), attempt {request.attempt}"),
    ]
    for message in body["messages"]:
        lines += ["", style.name(message["role"]), *_indented(safe(_content(message)))]
    if body.get("tools"):
        lines += ["", style.name("tools"), *(f"  {safe(_signature(tool['function']))}" for tool in body["tools"])]
    rest = {key: value for key, value in body.items() if key not in ("messages", "tools")}
    lines += ["", style.name("and"), *(f"  {key} = {json.dumps(value)}" for key, value in rest.items())]
    label = "none" if request.label is None else safe(request.label)
    return "\n".join([*lines, "", style.dim(f"label, which the model does not see: {label}")])


def _content(message: dict[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=2)


def _indented(text: str) -> list[str]:
    return [f"  {line}".rstrip() for line in text.splitlines()] or ["  (empty)"]


def _signature(function: dict[str, Any]) -> str:
    properties = function["parameters"].get("properties", {})
    required = set(function["parameters"].get("required", ()))
    names = [name if name in required else f"{name}?" for name in properties]
    description = (function.get("description") or "").partition("\n")[0]
    return f"{function['name']}({', '.join(names)})  {description}".rstrip()
