"""`osmosis-run simulate`: a training cluster on the user's desk. Load, faults, conformance, parity."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from runner.cli.console import Console, console
from runner.cli.exit import CommandError, Exit
from runner.cli.open_files import allow_open_files
from runner.cli.options import build_plan, file_argument, json_option, profile_option, set_option
from runner.cli.simulate_options import Request, simulate_options

if TYPE_CHECKING:
    from runner.build.plan import Plan
    from runner.simulate.server import Server


@click.command("simulate")
@file_argument
@simulate_options
@profile_option
@set_option
@json_option
def command(**asked: Any) -> int:
    """Play a training cluster for FILE (default: workflow.toml): start rollouts, serve chat, receive callbacks.

    Exit codes: 0 all is well, 2 the protocol was violated or a case failed, 3 rollouts without a verdict.
    """
    if "list" in asked["faults"]:
        return _list_faults()
    if "list" in asked["cases"]:
        return _list_cases()
    request = Request(**asked)
    request.check()
    plan = build_plan(request.workflow, request.profile, request.overrides)
    if warning := allow_open_files(request.concurrency * 4):
        console().warn(warning)
    if request.conformance:
        return _conformance(plan, request)
    return _parity(plan, request) if request.parity else _load(plan, request)


def _list_faults() -> int:
    from runner.simulate.faults import FAULTS

    width = max(map(len, FAULTS))
    for name, says in FAULTS.items():
        console().out(f"{name:<{width}}  {says}")
    return Exit.OK


def _list_cases() -> int:
    from runner.simulate.conformance import CASES

    width = max(len(case.name) for case in CASES)
    for case in CASES:
        console().out(f"{case.name:<{width}}  a server must {case.says}")
    return Exit.OK


def _load(plan: Plan, request: Request) -> int:
    from runner.cli.interrupt import interruptible
    from runner.simulate.report import report_text
    from runner.simulate.run import Options, Simulation

    options = Options(
        dialects=request.spoken, load=request.load(), group_size=request.group_size, chances=request.chances(),
        away=request.spells(request.away), pauses=request.spells(request.pauses), kill_after=request.kill_after,
        token_ids=request.token_ids, stall=request.stall,
    )  # fmt: skip
    answers, shell = request.answers(plan), console()

    async def main(server: Server | None) -> Any:
        simulation = Simulation(plan, options, answers, server, request.url or "", request.key, request.trust)
        with interruptible(simulation, _Talk(shell)):
            return await simulation.run()

    facts = _with_server(request, main).facts
    if request.as_json:
        shell.print_json(facts)
    else:
        shell.out(f"\n{report_text(facts, shell.data)}\n")
    return int(facts["exit_code"])


def _conformance(plan: Plan, request: Request) -> int:
    from runner.simulate.conformance import Suite
    from runner.simulate.report_cases import case_line, cases_text

    shell = console()
    show = None if request.as_json else lambda outcome: shell.out(case_line(outcome, shell.data))
    suite = Suite(plan, request.server, request.url or "", request.key, request.trust)

    async def main() -> Any:
        return await suite.run(request.spoken, request.cases, show or (lambda outcome: None))

    outcomes = _told(main)
    if not outcomes:
        raise CommandError("no case has such a name", "`osmosis-run simulate --case list` names them all")
    if request.as_json:
        shell.print_json({"cases": [outcome.to_json() for outcome in outcomes]})
    else:
        shell.out(f"\n{cases_text(outcomes, shell.data)}\n")
    return Exit.GATE if any(outcome.result == "failed" for outcome in outcomes) else Exit.OK


def _parity(plan: Plan, request: Request) -> int:
    from runner.simulate.parity import compare_rows
    from runner.simulate.report_cases import parity_text

    shell = console()

    async def main(server: Server | None) -> Any:
        where = (server, request.url or "", request.key, request.trust)
        return await compare_rows(plan, request.answers(plan), where, request.spoken, request.rollouts or 10)

    found = _with_server(request, main)
    if request.as_json:
        shell.print_json({"rows": [each.to_json() for each in found]})
    else:
        shell.out(f"\n{parity_text(found, shell.data)}\n")
    return Exit.GATE if any(each.differences for each in found) else Exit.OK


def _with_server(request: Request, work: Callable[[Server | None], Any]) -> Any:
    """The result of `work` with the server under test: ours, started and stopped around it, or nobody's."""

    async def main() -> Any:
        server = request.server()
        if server is None:
            return await work(None)
        async with server:
            return await work(server)

    return _told(main)


def _told(main: Callable[[], Any]) -> Any:
    """Run `main`; trouble with the server is told as what it is, with the end of what it said."""
    from runner.cli.event_loop import run_async
    from runner.simulate.client import Unreachable, Untrusted
    from runner.simulate.server import ServerError

    try:
        return run_async(main())
    except ServerError as error:
        if error.tail:
            console().err(_quoted(error.tail, console()))
        hint = "the lines above are its own; `osmosis-run serve FILE` shows them all"
        raise CommandError(str(error), hint if error.tail else "", Exit.INCOMPLETE) from None
    except Untrusted as error:
        hint = "`--cacert FILE` names the authority that signed it; `--insecure` takes it as it is"
        raise CommandError(f"the server was not asked: {error}", hint, Exit.INCOMPLETE) from None
    except Unreachable as error:
        hint = "is it running? `curl URL/health` must answer"
        raise CommandError(f"the server gave no answer: {error}", hint, Exit.INCOMPLETE) from None


def _quoted(tail: str, shell: Console) -> str:
    return "\n".join(f"{shell.talk.dim('serve │')} {line}" for line in tail.splitlines())


class _Talk:
    """What an interrupted simulation tells."""

    def __init__(self, shell: Console) -> None:
        self._shell = shell

    def told(self, text: str) -> None:
        self._shell.say("stopping; the report is of what was seen until now")
