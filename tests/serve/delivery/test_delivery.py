"""Delivery against a controller on a real socket: what is acknowledged, retried and abandoned, and in what order."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from email.utils import formatdate
from typing import Any

import pytest

from runner.serve.archive.ack_report import report_of


def test_a_callback_is_posted_with_its_key_and_acknowledged(desk: Any) -> None:
    async def test() -> None:
        controller = await desk.controller()
        async with desk.side() as side:
            await side.finish("a", controller.url)
            await side.done()
            assert controller.paths == ["/a/completion", "/a/grader"]
            first = controller.seen[0]
            assert first.body == b'{"completion":"a"}'
            assert first.headers["authorization"] == "Bearer secret"
            assert first.headers["content-type"] == "application/json"
            posted = side.posts[0]
            assert (posted.attempt_id, posted.rollout_id, posted.number, posted.status) == ("a", "wire-a", 1, 200)
            assert posted.origin == controller.url
            assert await side.outbox.owing() == []
            assert side.deliveries.backlog() == replace(side.deliveries.backlog(), pending=0, posting=0, abandoned=0)

    desk.run(test)


def test_trap_59_without_a_key_there_is_no_header(desk: Any) -> None:
    async def test() -> None:
        controller = await desk.controller()
        async with desk.side() as side:
            await side.finish("a", controller.url, key=None)
            await side.finish("b", controller.url, key="")
            await side.done()
            assert all("authorization" not in seen.headers for seen in controller.seen)

    desk.run(test)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_trap_6_any_2xx_acknowledges(desk: Any, status: int) -> None:
    async def test() -> None:
        controller = await desk.controller(lambda seen: (status, (), b""))
        async with desk.side() as side:
            await side.finish("a", controller.url)
            await side.done()
            assert controller.paths == ["/a/completion", "/a/grader"]
            assert await side.outbox.owing() == []

    desk.run(test)


HUGE = 9 * 1024 * 1024
BODIES = {
    "empty": (200, (), b""),
    "html": (200, (("content-type", "text/html"),), b"<html>ok</html>"),
    "not json": (200, (), b'{"trajectory": {'),
    "not an object": (200, (), b'["trajectory"]'),
    "deep": (200, (), b'{"trajectory":' + b"[" * 100_000),
    "huge": (200, (), b"x" * HUGE),
    "slow": b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{",
    "endless": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
}


@pytest.mark.parametrize("name", BODIES)
def test_trap_7_no_body_undoes_an_acknowledgement(desk: Any, name: str) -> None:
    async def test() -> None:
        controller = await desk.controller(lambda seen: BODIES[name])
        async with desk.side(replace(desk.quick, timeout=5.0)) as side:
            await side.finish("a", controller.url)
            await side.done()
            assert controller.paths == ["/a/completion", "/a/grader"]
            assert [each.result for each in side.posts] == ["acknowledged"] * 2
            assert [report_of(each.report) for each in side.posts] == [None] * 2
            assert all(each.seconds < 1.0 for each in side.posts)

    desk.run(test)


def test_trap_7_a_trajectory_report_is_handed_on(desk: Any) -> None:
    async def test() -> None:
        report = b'{"ok":true,"trajectory":{"samples":{"main":{"llm_call_metrics":[]}}},"more":1}'
        controller = await desk.controller(lambda seen: (200, (), report))
        async with desk.side() as side:
            await side.finish("a", controller.url, ["completion"])
            await side.done()
            assert json.loads(side.posts[0].report)["trajectory"] == {"samples": {"main": {"llm_call_metrics": []}}}

    desk.run(test)


@pytest.mark.parametrize("trouble", [500, 501, 502, 503, 504, 408, 425, 429, "hang", "reset", "close", "half"])
def test_traps_1_2_4_and_5_what_passes_is_retried_with_the_same_payload(desk: Any, trouble: Any) -> None:
    async def test() -> None:
        controller = await desk.controller(lambda seen: trouble if seen.number < 3 else 200)
        async with desk.side(replace(desk.quick, timeout=0.5) if trouble == "hang" else desk.quick) as side:
            await side.finish("a", controller.url)
            await side.done()
            assert controller.paths == ["/a/completion"] * 3 + ["/a/grader"] * 3
            assert {seen.body for seen in controller.seen[:3]} == {b'{"completion":"a"}'}
            assert side.told("a", "completion") == ["retry", "retry", "acknowledged"]
            # A kept-alive connection that breaks off is replaced within the same post.
            assert [each.number for each in side.posts if each.channel == "completion"] == [1, 2, 3]

    desk.run(test)


def test_traps_1_and_2_a_lost_acknowledgement_brings_the_same_payload_and_no_other(desk: Any) -> None:
    async def test() -> None:
        controller = await desk.controller(
            lambda seen: "drop-ack" if seen.number == 1 else 500 if seen.number < 4 else 200
        )
        async with desk.side() as side:
            await side.finish("a", controller.url)
            await side.done()
            assert {path: set(bodies) for path, bodies in controller.acked.items()} == {
                "/a/completion": {b'{"completion":"a"}'},
                "/a/grader": {b'{"grader":"a"}'},
            }

    desk.run(test)


@pytest.mark.parametrize("status", [400, 401, 403, 405, 409, 410, 413, 422, 301, 302, 303, 307, 308])
def test_trap_3_a_refused_completion_is_abandoned_and_the_grader_callback_goes_out(desk: Any, status: int) -> None:
    async def test() -> None:
        controller = await desk.controller(lambda seen: status if seen.channel == "completion" else 200)
        async with desk.side() as side:
            await side.finish("a", controller.url)
            await side.done()
            assert controller.paths == ["/a/completion", "/a/grader"]
            assert side.told("a", "completion") == ["abandoned"]
            assert str(status) in side.posts[0].problem
            assert "secret" not in repr(side.posts)
            assert side.deliveries.backlog().abandoned == 1
            assert (await side.outbox.counts())["abandoned"] == 1

    desk.run(test)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_trap_6_a_redirect_to_another_host_is_not_followed(desk: Any, status: int) -> None:
    async def test() -> None:
        other = await desk.controller()
        there = (("location", f"http://user:pw@127.0.0.1:{other.port}/take?token=hidden"),)
        controller = await desk.controller(lambda seen: (status, there, b""))
        async with desk.side() as side:
            await side.finish("a", controller.url, ["completion"])
            await side.done()
            assert (len(controller.seen), other.sockets) == (1, 0)
            problem = side.posts[0].problem
            assert "not followed" in problem and "final" in problem
            assert "hidden" not in problem and "pw" not in problem

    desk.run(test)


def test_trap_11_a_404_of_the_controller_itself_is_final(desk: Any) -> None:
    async def test() -> None:
        gone = (404, (), b'{"detail":"unknown rollout"}')
        controller = await desk.controller(lambda seen: gone if seen.channel == "completion" else 200)
        async with desk.side() as side:
            await side.finish("a", controller.url)
            await side.done()
            assert controller.paths == ["/a/completion", "/a/grader"]
            assert "does not know this rollout" in side.posts[0].problem

    desk.run(test)


def test_a_404_of_a_proxy_passes_when_the_controller_is_back(desk: Any) -> None:
    async def test() -> None:
        page = (404, (("content-type", "text/html"),), b"<h1>404 page not found</h1>")
        controller = await desk.controller(lambda seen: page if seen.number < 4 else 200)
        async with desk.side() as side:
            await side.finish("a", controller.url)
            await side.done()
            assert side.told("a", "completion") == ["retry"] * 3 + ["acknowledged"]

    desk.run(test)


def test_a_404_that_stays_is_final_once_others_are_acknowledged_or_it_took_too_long(desk: Any) -> None:
    async def test() -> None:
        controller = await desk.controller(lambda seen: (404, (), b"") if seen.path == "/a/completion" else 200)
        async with desk.side() as side:
            begun = time.monotonic()
            await side.finish("a", controller.url)
            await side.done()
            assert 0.25 < time.monotonic() - begun < 2.0
            assert side.told("a", "completion")[-1] == "abandoned"
            assert side.told("a", "grader") == ["acknowledged"]
        async with desk.side(replace(desk.quick, absence=1e9)) as side:
            assert await side.deliveries.recover() == 1
            await desk.until(lambda: "retry" in side.told("a", "completion"))
            await side.finish("b", controller.url)
            await side.done()
            assert side.told("a", "completion")[-1] == "abandoned"

    desk.run(test)


def test_a_404_now_and_then_is_not_one_that_stays(desk: Any) -> None:
    """Behind a proxy whose backends restart in turn, others are acknowledged between two of them."""

    async def test() -> None:
        answers = iter([(404, (), b""), 200])

        def script(seen: Any) -> Any:
            if seen.path != "/a/completion":
                return 200
            return (404, (), b"") if seen.number == 1 else next(answers) if "/b/grader" in controller.acked else 503

        controller = await desk.controller(script)
        async with desk.side() as side:
            await side.finish("a", controller.url)
            await desk.until(lambda: len(side.told("a", "completion")) > 1)
            await side.finish("b", controller.url)
            await side.done()
            assert next(answers, None) is None, "the second 404 came after others were acknowledged"
            told = side.told("a", "completion")
            assert told == ["retry"] * (len(told) - 1) + ["acknowledged"]

    desk.run(test)


@pytest.mark.parametrize("form", ["seconds", "date", "milliseconds"])
def test_traps_5_and_67_retry_after_is_honoured(desk: Any, form: str) -> None:
    async def test() -> None:
        def busy(seen: Any) -> Any:
            header = {
                "seconds": ("retry-after", "1"),
                "date": ("retry-after", formatdate(time.time() + 2.0, usegmt=True)),  # dates are cut to seconds
                "milliseconds": ("retry-after-ms", "400"),
            }[form]
            return (429, (header,), b"") if seen.number == 1 else 200

        controller = await desk.controller(busy)
        async with desk.side(replace(desk.quick, max_wait=5.0)) as side:
            await side.finish("a", controller.url, ["completion"])
            await side.done()
            waited = controller.seen[1].at - controller.seen[0].at
            assert (0.39 if form == "milliseconds" else 0.95) < waited < 2.5
            assert 0.3 < side.posts[0].wait < 2.5

    desk.run(test)


@pytest.mark.parametrize("asked", ["1000000000", "-5", "nan", "inf", "soon", "Wed, 01 Jan 2098 00:00:00 GMT", "0", ""])
def test_trap_67_a_strange_retry_after_waits_no_longer_than_we_may(desk: Any, asked: str) -> None:
    async def test() -> None:
        busy = (429, (("retry-after", asked),), b"")
        controller = await desk.controller(lambda seen: busy if seen.number == 1 else 200)
        async with desk.side() as side:
            await side.finish("a", controller.url, ["completion"])
            await side.done()
            assert side.told("a", "completion") == ["retry", "acknowledged"]
            assert side.posts[0].wait <= 0.06

    desk.run(test)


def test_attempts_and_give_up_abandon_and_say_so(desk: Any) -> None:
    async def test() -> None:
        controller = await desk.controller(lambda seen: 500)
        async with desk.side(replace(desk.quick, attempts=3)) as side:
            await side.finish("a", controller.url)
            await side.done()
            assert controller.paths == ["/a/completion"] * 3 + ["/a/grader"] * 3
            assert side.posts[2].problem.endswith("given up after 3 posts (`[serve.callbacks] attempts`)")
        async with desk.side(replace(desk.quick, give_up=0.2, timeout=0.1, concurrency=2)) as side:
            assert await side.deliveries.recover() == 2  # given up is not given away
            for number in range(200):  # most of which never get a turn while the controller is away
                await side.finish(f"b{number}", controller.url, ["completion"])
            await side.done()
            assert side.deliveries.backlog().abandoned == 202
            assert (await side.outbox.counts())["abandoned"] == 202
            assert "give_up" in side.posts[-1].problem

    desk.run(test)


@pytest.mark.parametrize("url", ["ftp://host/x", "http://", "http:///x", "//x", "http://h:99999/", "http://h/\r\nx: y"])
def test_trap_21_a_url_that_cannot_be_posted_to_is_abandoned_at_once(desk: Any, url: str) -> None:
    async def test() -> None:
        async with desk.side() as side:
            await side.finish("a", url, ["completion"])
            await side.done()
            assert side.told("a", "completion") == ["abandoned"]
            assert "URL" in side.posts[0].problem

    desk.run(test)


def test_a_key_that_would_break_the_header_is_never_sent(desk: Any) -> None:
    async def test() -> None:
        controller = await desk.controller()
        async with desk.side() as side:
            await side.finish("a", controller.url, ["completion"], key="k\r\nx-more: 1")
            await side.done()
            assert controller.seen == []
            assert "not printable ASCII" in side.posts[0].problem

    desk.run(test)
