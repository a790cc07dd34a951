"""How hypothesis runs here: no deadline for one example, since a busy machine is no bug; in CI always the same ones.

And no test leaves a variable behind: `[env]` of a file that is checked in this process sets some. Who is started in the
background (`make test &`) is deaf to Ctrl-C, and so would be the commands that are started here: they hear it.

What only some folders share is imported from the `conftest.py` that has it, as `tests.serve.conftest`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite", deadline=None, derandomize="CI" in os.environ, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def same_environment() -> Iterator[None]:
    before = dict(os.environ)
    yield
    if dict(os.environ) != before:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="session")
def wire() -> ModuleType:
    """`tests/wire.py`."""
    from tests import wire  # what `simulate` is made of: only the tests that ask for it wait for that

    return wire
