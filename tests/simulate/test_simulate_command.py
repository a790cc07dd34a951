"""`osmosis-run simulate` as a user runs it, against the real server."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from runner.build.plan import build
from runner.cli.table import run as main
from runner.config.load import load
from runner.simulate.answers import Fixed
from runner.simulate.client import SYSTEM
from runner.simulate.conformance import CASES, Suite
from runner.simulate.load import LoadOptions
from runner.simulate.run import Options, Simulation
from runner.simulate.server import Server, ServerError
from runner.simulate.starts import DIALECTS, fitting
from tests.capitals import write_capitals


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("capitals")
    write_capitals(folder)
    return folder


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "runner.cli.main", "simulate", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_a_load_with_faults_ends_well(folder: Path) -> None:
    ended = run(folder, "--rollouts", "60", "--fault", "callback-500=0.1", "--fault", "ack-drop=0.1", "--json")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    facts = json.loads(ended.stdout)
    assert facts["violations"] == []
    assert facts["rollouts"]["accepted"] == facts["rollouts"]["verdicts"] == 60
    assert facts["rollouts"]["unacknowledged"] == 0  # what was refused came again
    assert facts["latency"]["verdict"]["p99"] > 0
    assert {"callback-500", "ack-drop"} & set(facts["faults"])
    assert 0.0 < facts["reward"]["mean"] < 1.0


def test_nothing_is_lost_when_the_server_is_killed(folder: Path) -> None:
    ended = run(folder, "--duration", "1.5", "--rate", "60", "--fault", "callback-500=0.05", "--kill-after", "0.6")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "✓ no violation" in ended.stdout
    assert "kill -9 1" in ended.stdout


def test_over_tls_and_in_every_dialect_though_there_are_few(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
               "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
               "-keyout", str(key), "-out", str(cert)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    tls = [f'serve.hypercorn.{name}="{file}"' for name, file in (("certfile", cert), ("keyfile", key))]

    async def work() -> None:
        async with Server(folder / "workflow.toml", settings=tls) as server:
            monkeypatch.setenv("TLS_KEY", server.key)
            assert server.url.startswith("https://")
            asked = partial(run, folder, "--url", server.url, "--key-env", "TLS_KEY", "--rollouts", "5", "--json")
            refused = await asyncio.to_thread(asked)
            assert refused.returncode == 3 and "is not trusted: self-signed certificate" in refused.stderr
            assert "--cacert FILE" in refused.stderr
            for words in (["--insecure"], ["--cacert", str(cert)]):
                ended = await asyncio.to_thread(asked, *words)
                facts = json.loads(ended.stdout)
                assert (ended.returncode, facts["rollouts"]["verdicts"], facts["violations"]) == (0, 5, []), facts
                # Groups of four would leave one dialect without any.
                assert [facts["by_dialect"][each]["posted"] for each in DIALECTS] == [2, 2, 1]
                assert facts["notes"] == ["groups of 1, not 4, so that each dialect gets some"]

    asyncio.run(work())


def test_too_few_for_every_dialect_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(folder), "--rollouts", "2"]) == 0
    assert "nothing was asked in single-sample" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("size", "rollouts", "dialects", "fitting_size"),
    [(4, None, 3, 4), (4, 100, 3, 4), (4, 12, 3, 4), (4, 11, 3, 3), (4, 3, 3, 1), (4, 2, 3, 1), (4, 3, 1, 3)],
)
def test_groups_shrink_to_give_each_dialect_some(
    size: int, rollouts: int | None, dialects: int, fitting_size: int
) -> None:
    assert fitting(size, rollouts, dialects) == fitting_size


def test_parity(folder: Path) -> None:
    ended = run(folder, "--parity")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "9 compared  ·  all the same" in ended.stdout


def test_a_difference_is_shown(folder: Path) -> None:
    """The server is told another system prompt than the file at hand: it cannot play alike."""
    plan = build(load(folder / "workflow.toml"))

    async def work() -> Any:
        from runner.simulate.parity import compare_rows
        from runner.simulate.run import answers_of

        async with Server(folder / "workflow.toml", settings=('graders.answer.expect="another"',)) as server:
            return await compare_rows(plan, answers_of(plan), (server, "", "", SYSTEM), DIALECTS, 3)

    found = asyncio.run(work())
    assert any("reward: directly 1.0, over the wire 0.0" in each.differences for each in found)


def test_some_conformance_cases(folder: Path) -> None:
    names = ("start-plays", "completion-500", "cancel-no-ids", "status-true", "tool-bad-arguments", "killed-owing")
    cases = [word for name in names for word in ("--case", name)]
    ended = run(folder, "--conformance", "--dialect", "single-sample", *cases)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "6 ok  ·  0 failed  ·  0 skipped" in ended.stdout


def test_a_server_of_somebody_else_is_not_killed(folder: Path, fake_server: Any) -> None:
    """A server at a URL: what needs one of our own is skipped and says why. A bad one fails."""
    plan = build(load(folder / "workflow.toml"))

    async def work() -> Any:
        async with fake_server("sample-key", "runs-twice") as server:
            suite = Suite(plan, lambda settings: None, server.url)
            told: list[Any] = []
            globs = ["start-plays", "sample-name", "killed-idle", "stopped-idle", "size-body", "auth-wrong"]
            return await suite.run(DIALECTS, globs, told.append), told

    outcomes, told = asyncio.run(work())
    assert outcomes == told
    by_name = {(each.case.name, each.dialect): each for each in outcomes}
    assert by_name["start-plays", "single-sample"].result == "ok"
    assert by_name["sample-name", "multi-sample"].result == "failed"
    assert "sample-key" in by_name["sample-name", "multi-sample"].reason
    assert by_name["stopped-idle", "single-sample"].result == "skipped"
    assert "serve.max_body" in by_name["size-body", "agent-loop"].reason
    assert by_name["auth-wrong", "agent-loop"].reason == "the server was named without a key"


def test_the_table_of_cases_is_broad_and_sound() -> None:
    assert len(CASES) >= 80
    assert len({case.name for case in CASES}) == len(CASES)
    traps = {trap for case in CASES for trap in case.traps}
    assert traps <= set(range(1, 108))
    assert len(traps) >= 50
    assert all(case.says and set(case.dialects) <= set(DIALECTS) for case in CASES)


def test_ctrl_c_ends_with_a_report_and_leaves_no_server(folder: Path) -> None:
    command = [
        sys.executable,
        "-P",
        "-m",
        "runner.cli.main",
        "simulate",
        str(folder),
        "--rate",
        "20",
        "--duration",
        "60",
    ]
    process = subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not children.read_text():
        time.sleep(0.05)
    time.sleep(3.0)  # the server it has started is up, and it posts
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    facts = json.loads(out)
    assert facts["interrupted"]
    with (
        pytest.raises(ConnectionRefusedError),
        socket.create_connection(("127.0.0.1", int(facts["server"].rpartition(":")[2])), 1),
    ):
        pass


def test_a_server_that_dies_is_told(folder: Path) -> None:
    plan = build(load(folder / "workflow.toml"))

    async def work() -> Any:
        async with Server(folder / "workflow.toml") as server:
            options = Options(load=LoadOptions(rollouts=None, duration=20.0, rate=20.0, patience=3.0))
            simulation = Simulation(plan, options, Fixed("OK."), server)
            assert server._process is not None
            asyncio.get_running_loop().call_later(0.5, os.kill, server._process.pid, signal.SIGKILL)
            return await simulation.run()

    result = asyncio.run(work())
    rules = {each["rule"]: each for each in result.facts["violations"]}
    assert "exit code -9" in rules["server-died"]["evidence"][0]["evidence"]
    assert result.exit_code in (2, 3)


def test_a_server_that_does_not_start_says_why(folder: Path) -> None:
    async def work() -> None:
        async with Server(folder / "workflow.toml", settings=("serve.max_concurrent=0",)):
            raise AssertionError("it started")

    with pytest.raises(ServerError, match="did not start") as raised:
        asyncio.run(work())
    assert "max_concurrent" in raised.value.tail


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--fault", "callback-50=0.1"], 1, "did you mean"),
        (["--away", "soon"], 1, "2@5"),
        (["--conformance", "--parity"], 1, "two different things"),
        (["--case", "x"], 1, "--conformance"),
        (["--url", "ftp://example.org"], 1, "is not an address like http://127.0.0.1:9000"),
        (["--url", "http://127.0.0.1:9", "--insecure"], 1, "`https://` address"),
        (["--cacert", "{folder}/rows.jsonl", "--insecure"], 1, "contradict each other"),
        (["--cacert", "{folder}/rows.jsonl"], 1, "holds no certificate in PEM form"),
        (["--url", "http://127.0.0.1:9", "--kill-after", "1"], 1, "leave out `--url`"),
        (["--key-env", "NOTHING"], 1, "--url"),
        (["--url", "http://127.0.0.1:9", "--key-env", "NO_SUCH_NAME"], 1, "NO_SUCH_NAME is not set"),
        (["--call", "nothing={}"], 1, "names no tool"),
        (["--url", "http://127.0.0.1:9"], 3, "the server gave no answer"),
        (["--conformance", "--case", "no-such-case"], 1, "`osmosis-run simulate --case list` names them all"),
    ],
)
def test_mistakes_are_told_without_a_traceback(
    folder: Path, words: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", str(folder), *(word.replace("{folder}", str(folder)) for word in words)]) == code
    told = capsys.readouterr().err
    assert says in told
    assert "Traceback" not in told


def test_the_list_of_faults(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(folder), "--fault", "list"]) == 0
    assert "callback-429-date  " in capsys.readouterr().out


def test_the_list_of_cases(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(folder), "--case", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines]
    assert "cancel-queued" in names and len(names) == len(set(names))
    assert all("  a server must " in line for line in lines)


def test_a_server_that_runs_on_can_be_asked_again(folder: Path) -> None:
    async def work() -> list[dict[str, Any]]:
        plan = build(load(folder / "workflow.toml"))
        async with Server(folder / "workflow.toml", settings=('serve.callbacks.base_wait="50ms"',)) as server:
            options = Options(load=LoadOptions(rollouts=6, patience=20), chances={"callback-500": 0.5})
            runs = [Simulation(plan, options, Fixed("Lima"), None, server.url, server.key) for _ in range(2)]
            return [(await each.run()).facts for each in runs]

    first, second = asyncio.run(work())
    assert first["rollouts"]["verdicts"] == second["rollouts"]["verdicts"] == 6
    assert first["exit_code"] == second["exit_code"] == 0
    assert first["faults"] == second["faults"] != {}  # the same seed, the same bad luck
