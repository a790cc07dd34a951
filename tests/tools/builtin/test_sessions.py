"""`bash` and `python`: what they keep between calls, what a time-out leaves, and that nothing fools or floods them."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Any

from runner.sandboxes.sandbox import Command, Sandbox
from runner.tools.builtin.bash import Bash
from runner.tools.builtin.python import PythonTool
from runner.tools.builtin.tool import BuiltinTool, with_session
from runner.tools.tool import ToolResult, ToolScope


def shell(**keys: Any) -> BuiltinTool:
    part = Bash(**keys)
    return BuiltinTool(part.spec("sh"), with_session("sh", "work", part), timeout=None, limit=None, max_output=50_000)


def code(**keys: Any) -> BuiltinTool:
    part = PythonTool(**keys)
    return BuiltinTool(part.spec("py"), with_session("py", "work", part), timeout=None, limit=None, max_output=50_000)


async def said(tool: BuiltinTool, scope: ToolScope, **arguments: Any) -> tuple[str, str]:
    result: ToolResult = await tool.call(arguments, scope)
    return result.status, result.content


def test_the_shell_keeps_directory_variables_functions_and_jobs(bench: Any) -> None:
    async def test(sandbox: Sandbox, scope: ToolScope) -> None:
        tool = shell()
        assert await said(tool, scope, command="mkdir -p a/b && cd a/b; export X=1; y=2; f() { echo $X$y; }") == (
            "ok",
            "[no output]",
        )
        assert await said(tool, scope, command="f; basename $PWD") == ("ok", "12\nb")
        await said(tool, scope, command="sleep 30 &\necho $! > pid")
        assert await said(tool, scope, command="kill -0 $(cat pid) && echo alive") == ("ok", "alive")

    bench.run(test)


def test_output_errors_and_exit_codes_are_said(bench: Any) -> None:
    async def test(sandbox: Sandbox, scope: ToolScope) -> None:
        tool = shell()
        assert await said(tool, scope, command="echo out; echo err >&2; (exit 7)") == (
            "error",
            "out\nerr\n[exit code 7]",
        )
        assert await said(tool, scope, command="printf 'no newline'") == ("ok", "no newline")
        status, text = await said(tool, scope, command="if then")
        assert status == "error"
        assert "syntax error" in text
        assert await said(tool, scope, command="echo still here") == ("ok", "still here")
        assert (await said(tool, scope, command="cat; echo read nothing"))[1] == "read nothing"
        assert (await said(tool, scope))[0] == "error"
        assert (await said(tool, scope, command="a\0b"))[0] == "error"

    bench.run(test)


def test_a_command_that_ends_the_shell_is_followed_by_a_new_one(bench: Any) -> None:
    async def test(sandbox: Sandbox, scope: ToolScope) -> None:
        tool = shell()
        await said(tool, scope, command="mkdir deep; cd deep; export KEPT='it is \"kept\"\nhere'")
        assert await said(tool, scope, command="echo bye; exit 3") == ("error", "bye\n[exit code 3]")
        assert await said(tool, scope, command='echo "$KEPT"; basename $PWD') == ("ok", 'it is "kept"\nhere\ndeep')
        assert (await said(tool, scope, command="kill -9 $$"))[1] == "[exit code 137]"
        assert (await said(tool, scope, command="exec >/dev/null; echo lost"))[1] == "[no output]"
        assert await said(tool, scope, restart=True) == ("ok", "The shell was restarted.")
        assert await said(tool, scope, command="echo back") == ("ok", "back")

    bench.run(test)


def test_a_command_over_its_time_is_killed_with_all_it_started(bench: Any) -> None:
    async def test(sandbox: Sandbox, scope: ToolScope) -> None:
        tool = shell(timeout=10.0)
        await said(tool, scope, command="mkdir here; cd here; export X=kept")
        began = monotonic()
        line = "echo begun; (setsid sh -c 'trap \"\" TERM; sleep 3; touch survived') & trap '' TERM; sleep 60"
        status, text = await said(tool, scope, command=line, timeout=0.5)
        assert monotonic() - began < 5.0
        assert status == "timeout"
        assert text.startswith("begun\n[killed after 0.5 s. The shell was restarted")
        assert await said(tool, scope, command="basename $PWD; echo $X") == ("ok", "here\nkept")
        await asyncio.sleep(3.2)
        assert (await said(tool, scope, command="ls"))[1] == "[no output]"

    bench.run(test)


def test_a_flood_is_kept_as_head_and_tail(bench: Any) -> None:
    async def test(sandbox: Sandbox, scope: ToolScope) -> None:
        tool = shell(max_output=2000)
        result = await tool.call(
            {"command": "echo first; head -c 30000000 /dev/zero | tr '\\0' x; echo; echo last"}, scope
        )
        assert result.truncated
        assert len(result.content) < 2200
        assert result.content.startswith("first\nxxx")
        assert result.content.endswith("xxx\nlast")
        assert "bytes cut" in result.content

    bench.run(test)


def test_what_looks_like_the_end_is_output(plain: Any) -> None:
    async def test(sandbox: Sandbox, scope: ToolScope) -> None:
        tool = shell()
        assert await said(tool, scope, command="printf '\\n%s 0\\n' 0123456789abcdef01234567; echo $?") == (
            "ok",
            "\n0123456789abcdef01234567 0\n0",
        )
        # Whoever reads the shell's own variables fools nobody else: what is left over comes with the next call.
        assert (await said(tool, scope, command="printf '\\n%s 5\\n' $__mark; echo more"))[1] == "[exit code 5]"
        assert (await said(tool, scope, command="echo next"))[1].endswith("next")
        assert (await said(tool, scope, command="printf '\\xff\\xfe'"))[1] == "\ufffd\ufffd"

    plain.run(test)


def test_calls_at_once_take_turns_and_a_cancelled_one_leaves_nothing(plain: Any) -> None:
    async def test(sandbox: Sandbox, scope: ToolScope) -> None:
        tool = shell()
        calls = [said(tool, scope, command=f"sleep 0.1; n=$((n + 1)); echo {each} $n") for each in "abc"]
        assert [text for _, text in await asyncio.gather(*calls)] == ["a 1", "b 2", "c 3"]
        task = asyncio.create_task(said(tool, scope, command="sleep 2; touch late"))
        await asyncio.sleep(0.3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        assert await said(tool, scope, command="echo next") == ("ok", "next")
        await asyncio.sleep(2.0)
        assert [entry.name for entry in await sandbox.list()] == []

    plain.run(test)


def test_four_rollouts_do_not_wait_for_one_another(plain: Any) -> None:
    async def one(tool: BuiltinTool, scope: ToolScope) -> None:
        assert await said(tool, scope, command="sleep 0.5; echo done") == ("ok", "done")

    async def test(sandbox: Sandbox, scope: ToolScope) -> None:
        tool = shell()
        scopes = [ToolScope(scope.caller, sandboxes=scope.sandboxes) for _ in range(4)]
        await asyncio.gather(*(one(tool, each) for each in scopes))  # interpreters are up
        began = monotonic()
        await asyncio.gather(*(one(tool, each) for each in scopes))
        assert monotonic() - began < 1.5  # one after the other would take 2 s
        for each in scopes:
            for close in each.closers:
                await close()

    plain.run(test)


def test_the_interpreter_keeps_its_names_and_shows_the_last_value(bench: Any) -> None:
    async def test(sandbox: Sandbox, scope: ToolScope) -> None:
        tool = code()
        assert await said(tool, scope, code="import math\nx = 2\ndef f(n):\n    return n * x") == ("ok", "[no output]")
        assert await said(tool, scope, code="print('sum')\nf(21)") == ("ok", "sum\n42")
        assert await said(tool, scope, code="_ + 1; None") == ("ok", "[no output]")
        status, text = await said(tool, scope, code="def g():\n    return 1 / 0\ng()")
        assert status == "error"
        assert "return 1 / 0" in text
        assert "ZeroDivisionError" in text
        assert "_PROGRAM" not in text
        assert "in run" not in text
        assert "SyntaxError" in (await said(tool, scope, code="def"))[1]
        assert await said(tool, scope, code="import sys; sys.exit(4)") == ("error", "[exit code 4]")
        assert await said(tool, scope, code="x") == ("ok", "2")
        assert await said(tool, scope, code="import os; os.system('echo from a child'); print(input)")

    bench.run(test)


def test_code_over_its_time_loses_the_interpreter_and_says_so(bench: Any) -> None:
    async def test(sandbox: Sandbox, scope: ToolScope) -> None:
        tool = code(timeout=0.7)
        await said(tool, scope, code="x = 1")
        status, text = await said(tool, scope, code="while True: pass")
        assert (status, text) == (
            "timeout",
            "[killed after 0.7 s. The interpreter was restarted: its variables are gone.]",
        )
        assert "NameError" in (await said(tool, scope, code="x"))[1]

    bench.run(test)


def test_a_sandbox_without_the_program_says_so(plain: Any) -> None:
    async def test(sandbox: Sandbox, scope: ToolScope) -> None:
        status, text = await said(code(interpreter="python9"), scope, code="1")
        assert status == "error"
        assert "127" in text or "python9" in text
        assert (await sandbox.exec(Command(["true"]))).code == 0

    plain.run(test)
