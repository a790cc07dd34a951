"""The options of `simulate`, and what they ask for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli.exit import CommandError
from runner.cli.options import locate
from runner.records.quick import quick

if TYPE_CHECKING:
    from runner.build.plan import Plan
    from runner.simulate.answers import Answers
    from runner.simulate.client import Trust
    from runner.simulate.faults import Spell
    from runner.simulate.load import LoadOptions
    from runner.simulate.server import Server

_DIALECTS = ("agent-loop", "multi-sample", "single-sample")
_PATIENCE = 120.0

_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--conformance", is_flag=True, help="Play the acceptance suite instead of a load."),
    click.option("--case", "cases", multiple=True, metavar="GLOB",
                 help="With --conformance: only such cases. `--case list` names them."),
    click.option("--parity", is_flag=True, help="Play rows as `eval` does and over the wire, and compare."),
    click.option("--dialect", "dialects", multiple=True, type=click.Choice(_DIALECTS),
                 help="Speak only this one. Repeatable; all by default."),
    click.option("--rollouts", type=click.IntRange(min=1), metavar="N", help="How many. Default: 100, or what fits "
                 "into --duration."),
    click.option("--duration", type=click.FloatRange(min=0.1), metavar="S", help="Post starts for so many seconds."),
    click.option("--concurrency", type=click.IntRange(min=1), default=64, show_default=True, metavar="N",
                 help="Rollouts without a verdict at once."),
    click.option("--rate", type=click.FloatRange(min=0.01), metavar="R", help="Starts a second, however many run."),
    click.option("--group-size", type=click.IntRange(min=1), default=4, show_default=True, metavar="N",
                 help="Attempts of a row, posted together."),
    click.option("--warm-up", type=click.IntRange(min=0), default=0, metavar="N", help="Rollouts before, unmeasured."),
    click.option("--patience", type=click.FloatRange(min=0.1), default=_PATIENCE, show_default=True, metavar="S",
                 help="Seconds from a start to its verdict."),
    click.option("--say", metavar="TEXT", help="The model's answer to everything. Default: the file's [model]."),
    click.option("--call", metavar="TOOL=JSON", help="A tool call that the model makes before it answers."),
    click.option("--token-ids", is_flag=True, help="Send token ids and log-probabilities with completions."),
    click.option("--faults", "profile_of_faults", type=click.Choice(["none", "flaky", "hostile"]), default="none",
                 show_default=True, help="A set of faults of the controller."),
    click.option("--fault", "faults", multiple=True, metavar="NAME=CHANCE", help="One fault: callback-500=0.3. "
                 "Repeatable; `--fault list` names them."),
    click.option("--away", multiple=True, metavar="S@T", help="The controller is gone for S seconds at second T."),
    click.option("--pause", "pauses", multiple=True, metavar="S@T", help="It answers 429 for S seconds at second T."),
    click.option("--kill-after", type=click.FloatRange(min=0.0), metavar="S", help="Kill -9 the server, restart it."),
    click.option("--stall", type=click.FloatRange(min=0.1), default=12.0, show_default=True, metavar="S",
                 help="How long stalled requests are held."),
    click.option("--seed", type=int, default=0, show_default=True, help="Of faults, ids and waits."),
    click.option("--url", metavar="URL", help="A server that runs. Default: `osmosis-run serve FILE` is started."),
    click.option("--cacert", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
                 help="With https: the authority (PEM) that signed the server's certificate."),
    click.option("--insecure", is_flag=True, help="With https: take any certificate."),
    click.option("--key-env", metavar="NAME", help="With --url: the variable that holds the server's key."),
)  # fmt: skip


def simulate_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Everything of `Request` but the file and its settings, as options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@quick
class Request:
    """What the command line asked for."""

    workflow: Path
    conformance: bool
    cases: tuple[str, ...]
    parity: bool
    dialects: tuple[str, ...]
    rollouts: int | None
    duration: float | None
    concurrency: int
    rate: float | None
    group_size: int
    warm_up: int
    patience: float
    say: str | None
    call: str | None
    token_ids: bool
    profile_of_faults: str
    faults: tuple[str, ...]
    away: tuple[str, ...]
    pauses: tuple[str, ...]
    kill_after: float | None
    stall: float
    seed: int
    url: str | None
    cacert: Path | None
    insecure: bool
    key_env: str | None
    profile: str | None
    overrides: tuple[str, ...]
    as_json: bool

    def check(self) -> None:
        """Raises CommandError for what does not go together."""
        if self.conformance and self.parity:
            raise CommandError("--conformance and --parity are two different things", "ask for one after the other")
        if self.cases and not self.conformance:
            raise CommandError("--case chooses cases of --conformance", "add `--conformance`")
        if self.url and self.kill_after is not None:
            raise CommandError("--kill-after needs a server that simulate started itself", "leave out `--url`")
        if self.key_env and not self.url:
            raise CommandError("--key-env names the key of the server at --url", "add `--url URL`")
        if self.cacert and self.insecure:
            raise CommandError("--cacert and --insecure contradict each other", "leave one of them out")
        if (self.cacert or self.insecure) and self.url and not self.url.startswith("https:"):
            raise CommandError("--cacert and --insecure are about certificates", "name an `https://` address")
        if self.cacert:
            _parsed(self.trust.context, "--cacert takes a file of certificates in PEM form")
        if self.url:
            from runner.simulate.client import Client

            _parsed(lambda: Client(str(self.url)), "name the server as `--url http://HOST:PORT`")

    @property
    def trust(self) -> Trust:
        from runner.simulate.client import Trust

        return Trust(self.cacert, self.insecure)

    @property
    def key(self) -> str:
        if not self.key_env:
            return ""
        key = os.environ.get(self.key_env, "")
        if not key:
            raise CommandError(f"the variable {self.key_env} is not set", f"`export {self.key_env}=…` first")
        return key

    @property
    def spoken(self) -> tuple[str, ...]:
        return self.dialects or _DIALECTS

    def chances(self) -> dict[str, float]:
        from runner.simulate.faults import chances_of

        found: dict[str, float] = _parsed(
            lambda: chances_of(self.profile_of_faults, self.faults), "`--fault list` names them all"
        )
        return found

    def spells(self, words: tuple[str, ...]) -> tuple[Spell, ...]:
        from runner.simulate.faults import parse_spell

        hint = "`--away 2@5` is two seconds, five seconds after the first start"
        found: tuple[Spell, ...] = _parsed(lambda: tuple(map(parse_spell, words)), hint)
        return found

    def load(self) -> LoadOptions:
        from runner.simulate.load import LoadOptions

        most = self.rollouts if self.rollouts is not None or self.duration is not None else 100
        return LoadOptions(
            rollouts=most, duration=self.duration, concurrency=self.concurrency, rate=self.rate,
            warm_up=self.warm_up, patience=self.patience, seed=self.seed,
        )  # fmt: skip

    def answers(self, plan: Plan) -> Answers:
        from runner.simulate.run import answers_of

        if self.call is None:
            return answers_of(plan, self.say)
        name, equals, arguments = self.call.partition("=")
        if not equals or name not in plan.tools:
            have = ", ".join(plan.tools) or "no tools"
            raise CommandError(f"`--call {self.call}` names no tool of the file", f"write TOOL=JSON; it has {have}")
        return answers_of(plan, self.say, (name, arguments))

    def server(self, settings: tuple[str, ...] = ()) -> Server | None:
        from runner.simulate.server import Server

        if self.url:
            return None
        return Server(locate(self.workflow), profile=self.profile, settings=(*self.overrides, *settings))


def _parsed(read: Callable[[], Any], hint: str) -> Any:
    try:
        return read()
    except (ValueError, OSError) as error:
        raise CommandError(str(error), hint) from None
