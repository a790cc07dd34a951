"""Consent: a tool call that needs somebody's word is shown at the terminal, and made only after a yes."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable

from runner.batch.transcript import safe
from runner.cli.console import Console
from runner.tools.tool import Question

_LONGEST = 2000


def question_text(console: Console, question: Question) -> str:
    """What is asked: the call whole, as far as it can be read at a glance, and why it is asked about.

    Signs that would steer the terminal or turn the text around are spelled out: what is read is what is done.
    """
    arguments = safe(json.dumps(question.arguments, ensure_ascii=False, indent=2, default=str))
    shown = arguments if len(arguments) <= _LONGEST else f"{arguments[:_LONGEST]}\n… {len(arguments) - _LONGEST:,} more"
    style = console.talk
    why = f"\n{question.reason}" if question.reason else ""
    tool, rollout = style.name(safe(question.tool)), style.dim(safe(question.rollout_id))
    head = f"{style.warn('May this call be made?')}  {tool}  {rollout}"
    return f"\n{head}\n{shown}{why}\n{style.bold('y or N › ')}"


def is_yes(line: str | None) -> bool:
    """Only a plain yes is one."""
    return (line or "").strip().lower() in ("y", "yes")


class Consent:
    """Asks at the terminal, one question at a time, while other rollouts go on."""

    def __init__(self, console: Console, read: Callable[[], str] = sys.stdin.readline) -> None:
        self._console = console
        self._read = read
        self._turn = asyncio.Lock()

    async def __call__(self, question: Question) -> bool:
        """Whether the person at the terminal says yes. The end of the input is a no."""
        async with self._turn:
            self._console.flush()
            sys.stderr.write(question_text(self._console, question))
            sys.stderr.flush()
            return is_yes(await self._line())

    async def _line(self) -> str:
        # A daemon: whoever interrupts the run must not have to press return for the thread as well.
        loop = asyncio.get_running_loop()
        heard: asyncio.Future[str] = loop.create_future()

        def tell(line: str) -> None:
            if not heard.done():
                heard.set_result(line)

        def read() -> None:
            line = self._read()
            if not loop.is_closed():
                loop.call_soon_threadsafe(tell, line)

        threading.Thread(target=read, name="consent", daemon=True).start()
        return await heard
