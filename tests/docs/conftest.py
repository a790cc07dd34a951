"""What tests of the pages share: pages.py, and each page and block as a parameter."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def _pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_pages", Path(__file__).with_name("pages.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


PAGES = _pages()
BLOCKS: list[Any] = [block for page in PAGES.PAGES for block in PAGES.blocks_of(page)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`page` stands for each page, `block` for each block that the test's `chooses` takes."""
    if "page" in metafunc.fixturenames:
        ids = [str(page.relative_to(PAGES.ROOT)) for page in PAGES.PAGES]
        metafunc.parametrize("page", PAGES.PAGES, ids=ids)
    chooses = getattr(metafunc.function, "chooses", None)
    if chooses is not None:
        chosen = [block for block in BLOCKS if chooses(block)]
        metafunc.parametrize("block", chosen, ids=[block.place for block in chosen])


@pytest.fixture(scope="session")
def pages() -> Any:
    """The module pages.py."""
    return PAGES


@pytest.fixture(scope="session")
def all_blocks() -> list[Any]:
    return BLOCKS


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with an `osmosis-run` that starts at once."""
    with PAGES.warm(tmp_path_factory.mktemp("bin")) as folder:
        yield folder
