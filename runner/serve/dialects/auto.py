"""Which dialect a start speaks: by its path, and on `POST /rollout` by the evidence in its body.

The bodies of the second and third generation differ too little to be always sure. The evidence, in its order: a key
`llm_api_key`, or no rollout id, is the third's; an id that is no path segment is the second's; an id that is a segment
of one of the URLs is the third's, whose controllers route by URL. Without any: `Either`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote, urlsplit

from runner.records.file_name import is_segment
from runner.serve.dialects.agent_loop import AgentLoop
from runner.serve.dialects.dialect import Dialect
from runner.serve.dialects.multi_sample import MultiSample
from runner.serve.dialects.single_sample import Either, SingleSample

if TYPE_CHECKING:
    from runner.config.serve import ServeSection

Chooser: TypeAlias = Callable[[Mapping[str, Any]], Dialect]

_URLS = ("chat_completions_url", "completion_callback_url", "grader_callback_url")


@dataclass(frozen=True, slots=True)
class Dialects:
    """`starts` are the paths that are served, each with what tells a body's dialect; it takes any JSON value.

    `named` holds every dialect by name, served now or not: rollouts of an earlier process keep theirs.
    """

    starts: Mapping[str, Chooser]
    named: Mapping[str, Dialect]

    def choose(self, path: str, body: Mapping[str, Any]) -> Dialect | None:
        """The dialect of a start posted to `path`; None where no starts are taken."""
        chooser = self.starts.get(path)
        return None if chooser is None else chooser(body)


def make_dialects(section: ServeSection, *, secrets: Sequence[str] = ()) -> Dialects:
    """The dialects of `[serve]`. `secrets` are values that no error text may hold."""
    asked = section.chat.stream
    stream = True if asked == "auto" else asked
    name, status, most, hidden = section.sample, section.start_status, section.max_messages, tuple(secrets)
    first = AgentLoop(name, stream=asked is True, max_messages=most, secrets=hidden)
    second = MultiSample(
        name,
        start_status=status,
        stream=stream,
        enforce_deadlines=section.enforce_deadlines,
        max_messages=most,
        secrets=hidden,
    )
    third = SingleSample(name, stream=stream, max_messages=most, secrets=hidden)
    either = Either(name, start_status=status, stream=stream, max_messages=most, secrets=hidden)
    named: dict[str, Dialect] = {each.name: each for each in (first, second, third, either)}
    if section.dialect != "auto":
        only = named[section.dialect]
        return Dialects({only.path: partial(_always, only)}, named)
    tell = partial(_told_by_body, second, third, either)
    return Dialects({first.path: partial(_always, first), third.path: tell}, named)


def generation(body: Any) -> int | None:
    """2 or 3 by the evidence in a body of `POST /rollout`; None without any."""
    if not isinstance(body, Mapping) or "llm_api_key" in body:
        return 3
    named = body.get("rollout_id")
    if not isinstance(named, str):
        return 3
    if not is_segment(named):
        return 2
    for key in _URLS:
        url = body.get(key)
        # Few URLs are worth while to take apart.
        if isinstance(url, str) and (named in url or "%" in url) and named in _segments(url):
            return 3
    return None


def _always(dialect: Dialect, body: Mapping[str, Any]) -> Dialect:
    return dialect


def _told_by_body(second: Dialect, third: Dialect, either: Dialect, body: Mapping[str, Any]) -> Dialect:
    return {2: second, 3: third, None: either}[generation(body)]


def _segments(url: str) -> list[str]:
    """The parts of a URL's path, percent-decoded; none of what is no URL."""
    try:
        return [unquote(each) for each in urlsplit(url).path.split("/")]
    except ValueError:
        return []
