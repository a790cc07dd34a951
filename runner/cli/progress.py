"""How a run is watched: redrawn in place on a terminal, a line now and then elsewhere, nothing when asked for nothing.

The only file that imports rich, when the display starts.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from runner.batch.figures import OUTCOME_SIGNS, clip, duration, money, number, short
from runner.batch.standing import Nobody, Standing, Watcher
from runner.cli.console import Console

if TYPE_CHECKING:
    from rich.console import RenderableType

EVERY = 5.0
"""Seconds between plain lines, at least."""
_REDRAW = 0.2


def watcher(console: Console, *, silent: bool = False) -> Watcher:
    """The watcher that fits the console; `silent` (for --json) is nobody."""
    if silent or console.quiet:
        return Nobody()
    return LiveView(console) if console.live else PlainLines(console)


class PlainLines:
    """One line every few seconds."""

    def __init__(self, console: Console, every: float = EVERY) -> None:
        self._console = console
        self._every = every
        self._last = 0.0

    def began(self, standing: Standing) -> None:
        self._last = time.monotonic()

    def moved(self, standing: Standing) -> None:
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last = now
            self._console.say(line(standing))

    def told(self, text: str) -> None:
        self._console.say(text)

    def ended(self, standing: Standing) -> None:
        self._console.say(line(standing))


def line(standing: Standing) -> str:
    """`340/480 rollouts · 3 failed · reward 0.812 [0.778, 0.846] · 1.2M tokens · $0.12 · 34.2/s · 12.0 s left`."""
    parts = [f"{standing.done:,}/{standing.plan.total:,} rollouts"]
    parts += [f"{standing.outcomes[name]:,} {name}" for name in ("ungraded", "failed", "cancelled")
              if standing.outcomes[name]]  # fmt: skip
    reward = standing.reward
    if reward.value is not None:
        interval = "" if reward.low is None else f" [{number(reward.low)}, {number(reward.high)}]"
        parts.append(f"reward {number(reward.value)}{interval}")
    parts.append(_spent(standing))
    if standing.rate:
        parts.append(f"{standing.rate:,.1f}/s")
    if (left := standing.left) and standing.done < standing.plan.total:
        parts.append(f"{duration(left)} left")
    return " · ".join(part for part in parts if part)


def _spent(standing: Standing) -> str:
    tokens = standing.input_tokens + standing.output_tokens
    parts = [f"{short(tokens)} tokens"] if tokens else []
    if standing.cost is not None:
        parts.append(money(standing.cost))
    return " · ".join(parts)


class LiveView:
    """A few lines on the terminal, redrawn five times a second at most."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Any = None
        self._standing: Standing | None = None
        self._note = ""

    def began(self, standing: Standing) -> None:
        from rich.console import Console as RichConsole
        from rich.live import Live

        self._standing = standing
        color = self._console.talk.enabled
        screen = RichConsole(stderr=True, no_color=not color, highlight=False)
        # rich calls back from its own thread, so the numbers move even while nothing ends.
        self._live = Live(console=screen, refresh_per_second=1 / _REDRAW, transient=True, get_renderable=self.draw)
        self._live.start()

    def moved(self, standing: Standing) -> None:
        return None

    def told(self, text: str) -> None:
        if self._live is None:
            self._console.say(text)
        else:
            self._note = text

    def ended(self, standing: Standing) -> None:
        self.close()

    def close(self) -> None:
        """Give the terminal back, cursor and all."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def draw(self) -> RenderableType:
        """What stands on the screen now."""
        from rich.console import Group
        from rich.text import Text

        standing = self._standing
        if standing is None:
            return Text("")
        lines = [self._bar(standing), self._counts(standing), self._numbers(standing)]
        # Spelled before rich counts columns: a sign that grows on its way out would wrap, and be drawn again below.
        spelled = self._console.spelled
        lines += [Text(spelled(f"  {count:>5,}×  {clip(text, 66)}"), style="red", overflow="crop", no_wrap=True)
                  for text, count in list(standing.failures.items())]  # fmt: skip
        if self._note:
            lines.append(Text(spelled(f"  {clip(self._note, 76)}"), style="yellow"))
        return Group(*lines)

    def _bar(self, standing: Standing) -> Any:
        from rich.text import Text

        width, total = 42, max(1, standing.plan.total)
        filled = min(width, int(width * standing.done / total))
        text = Text("  ")
        text.append("█" * filled, style="green")
        text.append("·" * (width - filled), style="dim")
        text.append(f"  {standing.done:,}/{standing.plan.total:,}", style="bold")
        text.append(f"  {100 * standing.done / total:.0f} %", style="dim")
        if standing.reused:
            text.append(f"  {standing.reused:,} re-used", style="dim")
        return text

    def _counts(self, standing: Standing) -> Any:
        from rich.text import Text

        styles = {"scored": "green", "ungraded": "yellow", "failed": "red", "cancelled": "dim"}
        text = Text("  ")
        for name, style in styles.items():
            if standing.outcomes[name] or name == "scored":
                text.append(f"{OUTCOME_SIGNS[name]} {standing.outcomes[name]:,} {name}   ", style=style)
        text.append(f"{standing.running():,} running", style="dim")
        return text

    def _numbers(self, standing: Standing) -> Any:
        from rich.text import Text

        reward = standing.reward
        text = Text("  reward ")
        text.append(number(reward.value), style="bold")
        if reward.low is not None:
            text.append(f" [{number(reward.low)}, {number(reward.high)}]")
        facts = [_spent(standing), f"{standing.rate:,.1f}/s" if standing.rate else "", duration(standing.seconds)]
        if (left := standing.left) is not None and standing.done < standing.plan.total:
            facts.append(f"{duration(left)} left")
        text.append("   " + " · ".join(fact for fact in facts if fact), style="dim")
        return text
