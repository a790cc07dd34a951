"""Which URLs may be called: traps 21, 61 and 80, and what two parsers would read differently."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.serve.start import Refused
from runner.serve.urls import UrlPolicy, read_url

ANY = UrlPolicy(["http://*", "https://*"])
SOME = UrlPolicy(["http://127.0.0.1:*/cb/*", "https://*.Internal/*", "http://[0:0::1]:8000", "*://exact.example"])


def refused(policy: UrlPolicy, url: str, **options: bool) -> str:
    with pytest.raises(Refused) as caught:
        policy.check("completion_callback_url", url, **options)
    assert caught.value.status == 422
    (detail,) = caught.value.detail
    assert detail["loc"] == ["body", "completion_callback_url"]
    return str(detail["msg"])


@pytest.mark.parametrize(
    "url",
    ["http://a", "HTTPS://A.b.", "http://a:1/x?y=1&z=@", "http://[::1]:8/x", "http://a_b/c:d;e=f@g/.h", "http://a/b%20c"],
)  # fmt: skip
def test_ordinary_urls_may_be_called(url: str) -> None:
    ANY.check("f", url)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "is empty"),
        ("ftp://a/b", "http:// or https://"),
        ("//a/b", "http:// or https://"),
        ("http://", "names no host"),
        ("http:///x", "names no host"),
        ("http://:80/", "names no host"),
        ("http://allowed.example@evil.example/", "credentials"),
        ("http://a\\@b/", "backslash"),
        ("http://a/b\r\nx: y", "blank"),
        ("http://é.example/", "not ASCII"),
        ("http://a/x#f", "fragment"),
        ("http://a:0/", "port 0"),
        ("http://a:65536/", "port 65536"),
        ("http://a:8x/", "no valid host"),
        ("http://a..b/", "no valid host"),
        ("http://%61/", "no valid host"),
        ("http://[::1/", "no valid host"),
        ("http://[:::]/", "IPv6"),
        ("http://a/cb/../admin", "part of its path"),
        ("http://a/cb/%2e%2E/admin", "part of its path"),
        ("http://a/cb%2f..%2Fadmin", "part of its path"),
        ("http://a/.", "part of its path"),
    ],
)
def test_what_may_be_read_in_two_ways_is_refused(url: str, words: str) -> None:
    assert words in refused(ANY, url)


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:41877/cb/1", "https://x.internal", "https://a.b.INTERNAL.:443/z", "http://[::1]:8000/any",
     "http://exact.example/a", "https://exact.example:443/b"],
)  # fmt: skip
def test_patterns_take(url: str) -> None:
    SOME.check("f", url)


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1/other", "http://127.0.0.1/cb", "https://internal", "https://x.internal:444/", "http://x.internal/",
     "http://[::1]:8001/", "https://xinternal/", "https://x.internal.evil.example/", "http://exact.example:8080/",
     "http://2130706433:1/cb/x", "http://127.0.0.1.evil.example:1/cb/1"],
)  # fmt: skip
def test_patterns_do_not_take(url: str) -> None:
    assert "allow_callbacks" in refused(SOME, url)


def test_a_url_that_a_path_is_put_after_has_no_query() -> None:
    assert "query" in refused(ANY, "http://a/?x=1", query=False)
    ANY.check("f", "http://a/x", query=False)


@pytest.mark.parametrize("pattern", ["", "*", "a.example", "ftp://a", "http://a@b", "http://a:b", "http://[::x]"])
def test_what_is_no_pattern_is_named(pattern: str) -> None:
    with pytest.raises(ValueError, match="`"):
        UrlPolicy([pattern])


def test_nothing_is_allowed_by_no_pattern() -> None:
    assert "allow_callbacks" in refused(UrlPolicy([]), "http://a")


@given(st.text(max_size=60) | st.from_regex(r"https?://[!-~]{0,40}", fullmatch=True))
def test_what_is_let_through_is_read_alike_by_a_lenient_parser(url: str) -> None:
    from urllib.parse import urlsplit

    only = UrlPolicy(["*://good.example:*"])
    try:
        only.check("f", url)
    except Refused:
        return
    parts = urlsplit(url)
    assert (parts.hostname or "").removesuffix(".") == "good.example" and parts.username is None


_ORIGINS = (
    "http://a",
    "HTTPS://A.b.",
    "http://[0:0::1]:8",
    "http://a:0",
    "http://a..b",
    "ftp://a",
    "http://u@a",
    "//a",
)
_SEGMENTS = ("", "x", ".", "..", ".x", "%2e", "x%2F..", "~_-", "é", " ", "\\", "x\n")


@given(st.sampled_from(_ORIGINS), st.lists(st.sampled_from(_SEGMENTS).map("/".__add__), max_size=3))
@settings(max_examples=500)
def test_the_quick_reading_of_usual_urls_says_what_the_grammar_says(origin: str, path: list[str]) -> None:
    """A URL that ends in a query, also in an empty one, is read the long way."""
    url = origin + "".join(path)
    quick, long = read_url(url), read_url(url + "?")
    if isinstance(quick, str):
        assert isinstance(long, str)
    else:
        assert quick[1] is False
        assert long == (quick[0], True)
