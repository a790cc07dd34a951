"""`osmosis-run model-server`: a file's scripted model behind an OpenAI-compatible endpoint, for demos and tests.

The rules may look at `row`, which no HTTP request carries: a request belongs to the row of the file's dataset whose
prompt it begins with.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli.console import console
from runner.cli.exit import CommandError, Exit
from runner.cli.listening import cannot_listen
from runner.cli.options import build_plan, file_argument, profile_option, set_option

if TYPE_CHECKING:
    from runner.build.plan import Plan
    from runner.models.model import Model
    from runner.records.completion import Completion
    from runner.records.message import Message

Answer = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


@click.command("model-server")
@file_argument
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=8001, show_default=True, help="0 takes a free one.")
@click.option("--latency", type=click.FloatRange(min=0), default=0.0, help="Seconds before each answer.")
@profile_option
@set_option
def command(
    workflow: Path, host: str, port: int, latency: float, profile: str | None, overrides: tuple[str, ...]
) -> Exit:
    """Serve the scripted model of FILE (default: workflow.toml) over HTTP until Ctrl-C.

    `python -m runner.models.double` does the same for a function of yours, and misbehaves on demand.
    """
    import asyncio

    plan = build_plan(workflow, profile, overrides)
    if plan.config.model is None or plan.config.model.effective_provider != "scripted" or plan.make_model is None:
        raise CommandError(
            f"`{workflow}` has no scripted model to serve",
            'set `provider = "scripted"` and write [[model.rules]], or serve a function with '
            "`python -m runner.models.double --answer ./file.py:function`",
        )
    asyncio.run(_serve(responder(plan.make_model(), rows_by_prompt(plan)), host, port, latency))
    return Exit.OK


def rows_by_prompt(plan: Plan) -> dict[str, Mapping[str, Any]]:
    """The rows of the file's dataset by the prompt that each begins with; empty without a dataset."""
    if plan.dataset is None:
        return {}
    return {_mark(plan.request(row, 0).prompt): row.data for row in plan.dataset.rows()}


def responder(model: Model, rows: Mapping[str, Mapping[str, Any]]) -> Answer:
    """What the server answers a chat request with. Raises what the model raises: an error of the server."""
    from runner.records.completion import Caller, Sampling

    async def answer(request: dict[str, Any]) -> dict[str, Any]:
        messages: list[Message] = request["messages"]
        first = next((n for n, message in enumerate(messages) if message.get("role") == "assistant"), len(messages))
        row = rows.get(_mark(messages[:first]), {})
        return _message(await model.complete(messages, (), Sampling(), Caller(_mark(messages), row)))

    return answer


def _mark(messages: Sequence[Message]) -> str:
    return json.dumps([[message.get("role"), message.get("content")] for message in messages])


def _message(completion: Completion) -> dict[str, Any]:
    reasoning = {"reasoning_content": completion.reasoning} if completion.reasoning else {}
    return {**completion.message, **reasoning, "finish_reason": completion.finish_reason}


async def _serve(answer: Answer, host: str, port: int, latency: float) -> None:
    import asyncio

    from runner.models.double import Double

    try:
        async with Double(answer, host=host, port=port, latency=latency) as double:
            console().out(double.base_url)
            console().say(f"serving; use it with `--set model.provider=openai --set model.base_url={double.base_url}`")
            await asyncio.Event().wait()
    except OSError as error:
        raise cannot_listen(error, host, port) from None
