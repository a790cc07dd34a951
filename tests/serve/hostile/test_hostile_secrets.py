"""Keys are where they are used and nowhere else, redirects are followed to nobody, and ids are data, never paths."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from runner.models.double_http import Request, response

SECRETS = ("chat-secret-51c2e8", "callback-secret-9d04aa", "loop-secret-c77b13")


def echoing(request: Request) -> bytes | None:
    """Chat of some rollouts fails with a body that repeats the key, as proxies do; callbacks of some are refused."""
    shown = json.dumps({"error": {"message": f"bad key {request.headers.get('authorization')}"}}).encode()
    told = "broken" in request.path or b"broken" in request.body
    if told and request.path.endswith("/chat/completions"):
        return response(401, shown)
    if b"flaky" in request.body and request.path.endswith("/completion") and request.body not in _REFUSED:
        _REFUSED.add(request.body)
        return response(503, shown)
    return None


_REFUSED: set[bytes] = set()


def files(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        yield from (Path(place) / name for name in names)


@pytest.mark.parametrize("format", ["console", "json", "plain"])
def test_54_to_60_and_100_keys_are_told_to_nobody(
    serve: Callable[..., Any], make_double: Callable[..., Any], format: str
) -> None:
    """Traps 54 to 60, 100: no key in logs, metrics, error and status bodies, and, once delivered, nowhere on disk."""
    controller = make_double(answer=echoing)
    # A sweep empties the write-ahead log: what was delivered is then overwritten everywhere.
    words = (f"serve.log.format={format}", "serve.log.level=debug", 'serve.cleanup_interval="500ms"')
    served = serve("--log", "events", *(word for each in words for word in ("--set", each)))
    said = []
    names = [f"{kind}-{format}-{each}" for kind in ("fine", "broken", "flaky") for each in range(3)]
    for name in names:
        for generation in (2, 3):
            keys = {"controller_api_key": SECRETS[1], "llm_api_key": SECRETS[0]}
            path, body = controller.start(f"{name}-{generation}", generation, **keys)
            status, answer = served.ask("POST", path, body)
            assert status == 202, answer
        status, answer = served.ask("POST", *controller.start(f"{name}-1", 1, api_key=SECRETS[2]))
        assert status == 202, answer
        for wrong in ({"label": 7}, {"chat_completions_url": SECRETS[0]}, {"rollout_id": [SECRETS[0]]},
                             {"api_key": [SECRETS[2]]},
                      {"controller_api_key": SECRETS[1] + "\n"}, {"metadata": SECRETS[0]},
                      {"llm_api_key": {SECRETS[0]: 1}},
                      {"server_url": f"http://u:{SECRETS[0]}@h/"},
                      {"completion_callback_url": f"http://h/?{SECRETS[1]}\n"},
                      {"messages": SECRETS[2]}, {"completion_params": [SECRETS[2]]}):  # fmt: skip
            for generation in (1, 3):
                path, body = controller.start("wrong", generation, api_key=SECRETS[2], llm_api_key=SECRETS[0])
                said.append(served.ask("POST", path, {**body, **wrong})[1] if wrong.keys() & body.keys() else b"")
    said.append(served.ask("POST", "/rollout", json.dumps(body).encode() + b"]")[1])
    said.append(served.ask("GET", "/health", key=SECRETS[0])[1])
    said.append(served.ask("POST", "/rollout", b"{}", key=SECRETS[0])[1])
    served.quiet()
    said += [served.ask("GET", f"/rollout/{name}-{generation}/status")[1] for name in names for generation in (1, 2, 3)]
    assert any(b'"failure"' in each for each in said) and any(b'"success"' in each for each in said)
    assert len(controller.verdicts) >= 3 * len(names)
    said += [served.metrics().encode(), served.stderr().encode()]
    time.sleep(1.2)
    said += [each.read_bytes() for each in files(served.folder)]
    assert any(each.name == "rollouts.db-wal" for each in files(served.folder))
    for secret in (*SECRETS, served.KEY):
        found = [each[max(0, each.find(secret.encode()) - 200) :][:400] for each in said if secret.encode() in each]
        assert not found, (secret, found[:2])
    served.unharmed()


def test_6_redirects_are_followed_to_nobody(serve: Callable[..., Any], make_double: Callable[..., Any]) -> None:
    """Trap 6: 301 to 308 for chat and for callbacks, to another host."""
    thief = make_double()

    def redirecting(request: Request) -> bytes | None:
        moved = (("location", f"{thief.url}{request.path}"),)
        chat = request.path.endswith("/chat/completions")
        kind = 301 + int(request.path.split("/")[2][-1])
        return response(kind, b"", headers=moved) if ("chat" in request.path.split("/")[2]) == chat else None

    controller = make_double(answer=redirecting)
    served = serve()
    for kind in (0, 1, 2, 6, 7):
        for what in ("chat", "callback"):
            path, body = controller.start(f"{what}-{kind}", 3, controller_api_key="k", llm_api_key="l")
            assert served.ask("POST", path, body)[0] == 202
    until = time.monotonic() + 10
    while (health := json.loads(served.ask("GET", "/health")[1]))["callbacks"]["abandoned"] < 10:
        assert time.monotonic() < until, health
        time.sleep(0.05)
    for kind in (0, 1, 2, 6, 7):
        chat = json.loads(served.ask("GET", f"/rollout/chat-{kind}/status")[1])
        assert chat["status"] == "failure" and "redirect" in chat["err_message"], chat
        # The verdict of a rollout is not changed by a callback that could not be delivered.
        assert json.loads(served.ask("GET", f"/rollout/callback-{kind}/status")[1])["status"] == "success"
    assert thief.paths == []
    served.unharmed()


IDS = (
    "../../escaped", "../escaped", "/var/escaped", "..", ".", "a/b", "a\\b", "nul\0nul", "\U0001f600",
    "\u202eltr\u202c", "\u0645\u0631\u062d\u0628\u0627",
    "x" * 256, "x" * 257, "\U0001f600" * 256, "x" * 1024, "x" * 1025, "x" * 5000, " ", " padded ", "con", "nul.txt",
    "-rf", "~", "$HOME", "%2e%2e%2fescaped",
    "a\nb", "\ud83d", "a\x1b[31m", "...", "archive", "x.jsonl",
)  # fmt: skip


def test_41_to_43_and_90_ids_name_no_path(serve: Callable[..., Any], controller: Any) -> None:
    """Traps 41, 42, 43, 90: the first two generations take any id, the third segments; none names a file."""
    served = serve("--log", "deep/events", "--set", 'serve.archive="deep/archive"')
    taken = []
    for name in IDS:
        for generation in (1, 2, 3):
            path, body = controller.start("any", generation)
            if generation == 3:
                body["llm_api_key"] = "k"  # says which generation it is
            status, answer = served.ask("POST", path, {**body, "rollout_id": name})
            assert status in (202, 422), (name, generation, status, answer)
            assert (status == 202) == fits(name, generation), (name[:30], generation, status, answer)
            if status == 202:
                taken.append(name)
        asked = quote(name.encode("utf-8", "replace"), safe="")
        status, answer = served.ask("GET", f"/rollout/{asked}/status")
        assert status == 200 and json.loads(answer)["status"] != "", (name, answer)
    served.quiet()
    time.sleep(0.3)
    found = [each.relative_to(served.folder) for each in files(served.folder)]
    known = {"workflow.toml", "state", "deep"}
    assert {each.parts[0] for each in found if not each.name.startswith("stderr-")} == known, found
    assert {each.parts[1] for each in found if each.parts[0] == "deep"} == {"archive", "events"}
    assert sum(each.parts[1] == "events" for each in found if each.parts[0] == "deep") == len(set(taken))
    outside = [each for each in (*served.folder.parent.glob("escaped*"), Path(IDS[2])) if each.exists()]
    assert not outside, outside
    assert "\x1b" not in served.stderr()
    served.unharmed()


def fits(name: str, generation: int) -> bool:
    """As wire-protocol 2.3, 3.2, 5.1 say, with a length for all."""
    if "\ud83d" in name:
        return False
    if generation == 1:
        return len(name) <= 256 and bool(name.strip())
    if generation == 2:
        return len(name) <= 1024
    return len(name) <= 1024 and name not in ("", ".", "..") and not set(name) & set("/\\\0")
