"""The command line of the test double: words to a running `Double`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import importlib.util
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from runner.models.double import Double, Responder
from runner.models.double_faults import Fault, parse_faults


class UsageError(Exception):
    """The command line cannot be obeyed."""


def main(words: list[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM. Exit codes: 0 ended by a signal, 1 cannot listen, 2 a wrong command line."""
    options = _parser().parse_args(words)
    try:
        double = build(options)
    except UsageError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    try:
        asyncio.run(_serve(double))
    except OSError as error:
        place = f"{options.host}:{options.port}"
        sys.stderr.write(f"error: cannot listen on {place}: {os.strerror(error.errno) if error.errno else error}\n")
        sys.stderr.write("hint: another process may have the port; `--port 0` takes a free one\n")
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


def _parser() -> argparse.ArgumentParser:
    about = "An OpenAI-compatible server that computes its answers and misbehaves on demand."
    parser = argparse.ArgumentParser(prog="python -m runner.models.double", description=about)
    add = parser.add_argument
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=8001, help="0 takes a free port (default: 8001)")
    add("--answer", metavar="REF", help="module:function or ./file.py:function, from request to answer")
    add("--fixed", metavar="TEXT", help="always this text")
    two_steps = "first a call of the first tool offered, with these arguments, then the text of --fixed"
    add("--two-step", metavar="JSON", nargs="?", const="{}", help=two_steps)
    add("--latency", type=float, default=0.0, metavar="SECONDS", help="before each answer")
    add("--jitter", type=float, default=0.0, metavar="SHARE", help="how much the latency varies, from 0 to 1")
    add("--token-ids", action="store_true", help="invent token ids and log-probabilities for who asks for them")
    add("--fault", default="", metavar="KIND:CHANCE,...", help="a status, hang, reset, cut, garbage or empty")
    add("--seed", type=int, default=0, help="of the faults and the jitter")
    add("--retry-after", metavar="VALUE", help="the Retry-After header of 429 and 503")
    return parser


def build(options: argparse.Namespace) -> Double:
    """The double that the options describe. Raises UsageError."""
    if options.latency < 0:
        raise UsageError("--latency must not be negative")
    if not 0 <= options.jitter <= 1:
        raise UsageError("--jitter must be from 0 to 1")
    if not 0 <= options.port <= 65535:
        raise UsageError("--port must be from 0 to 65535")
    return Double(
        _responder(options),
        host=options.host,
        port=options.port,
        latency=options.latency,
        jitter=options.jitter,
        token_ids=options.token_ids,
        faults=_faults(options.fault),
        seed=options.seed,
        retry_after=options.retry_after,
    )


def _faults(text: str) -> list[Fault]:
    try:
        return parse_faults(text)
    except ValueError as error:
        raise UsageError(f"--fault: {error}") from None


def _responder(options: argparse.Namespace) -> Responder:
    if options.answer and (options.fixed is not None or options.two_step is not None):
        raise UsageError("--answer computes the answer; --fixed and --two-step cannot be added to it")
    if options.answer:
        return load_responder(options.answer)
    text = "ok" if options.fixed is None else options.fixed
    if options.two_step is None:
        return lambda request: text
    try:
        json.loads(options.two_step)
    except ValueError as error:
        raise UsageError(f"--two-step: the arguments are not JSON: {error}") from None
    return two_step(text, options.two_step)


def two_step(text: str, arguments: str) -> Responder:
    """First a call of the first tool offered, with these arguments (JSON); after a tool's result, `text`."""

    def respond(request: dict[str, Any]) -> Any:
        tools = request.get("tools")
        if not tools or request["messages"][-1].get("role") == "tool":
            return text
        function = {"name": tools[0]["function"]["name"], "arguments": arguments}
        return {"content": None, "tool_calls": [{"type": "function", "function": function}]}

    return respond


def load_responder(reference: str) -> Responder:
    """The function that `module:function` or `./file.py:function` names. Raises UsageError."""
    module_name, colon, name = reference.rpartition(":")
    if not colon or not module_name or not name:
        raise UsageError(f"--answer must be module:function or ./file.py:function, found `{reference}`")
    try:
        module = _load_file(Path(module_name)) if module_name.endswith(".py") else importlib.import_module(module_name)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(f"--answer: cannot import `{module_name}`: {type(error).__name__}: {error}") from None
    responder = getattr(module, name, None)
    if not callable(responder):
        what = "is not a function" if responder is not None else "is not there"
        raise UsageError(f"--answer: `{name}` {what} in `{module_name}`")
    found: Responder = responder
    return found


def _load_file(path: Path) -> Any:
    if not path.is_file():
        raise UsageError(f"--answer: no file `{path}`")
    spec = importlib.util.spec_from_file_location(f"double_responder_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"--answer: `{path}` is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickles of the file look themselves up
    spec.loader.exec_module(module)
    return module


async def _serve(double: Double) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    async with double:
        line = {"message": f"listening on {double.url}", "url": double.url, "base_url": double.base_url}
        sys.stdout.write(json.dumps({**line, "port": double.port, "pid": os.getpid()}) + "\n")
        sys.stdout.flush()
        await stop.wait()
