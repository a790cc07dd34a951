"""schemathesis throws what the OpenAPI document allows, and what it forbids, at the real server."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from openapi_spec_validator import validate
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CASES = 60 if "CI" in os.environ else 300
"""Of each operation that takes a body, in each of the two modes; a few of the others."""
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
URLS = ("server_url", "chat_completions_url", "completion_callback_url", "grader_callback_url")
OPEN = [("GET", "/health"), ("GET", "/metrics")]
"""Nothing that they are asked with could be wrong."""
OPERATIONS = [
    ("POST", "/v1/rollout/init"),
    ("POST", "/rollout"),
    ("POST", "/rollout/cancel"),
    ("GET", "/rollout/{rollout_id}/status"),
    ("GET", "/platform/health"),
]
THROWN = [
    *((method, path, mode) for method, path in OPERATIONS for mode in GenerationMode),
    *((method, path, GenerationMode.POSITIVE) for method, path in OPEN),
]


@pytest.fixture(scope="module")
def served(serve: Callable[..., Any], controller: Any) -> Any:
    # What is made up must reach nobody but the double.
    return serve("--set", f'serve.allow_callbacks=["{controller.url}/*"]')


@pytest.fixture(scope="module")
def document(served: Any) -> dict[str, Any]:
    status, body = served.ask("GET", "/openapi.json")
    assert status == 200
    found: dict[str, Any] = json.loads(body)
    return found


def test_the_document_is_valid_and_names_every_operation(document: dict[str, Any]) -> None:
    validate(document)
    named = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert named == {*OPERATIONS, *OPEN}


@pytest.mark.parametrize(("method", "path", "mode"), THROWN)
def test_reality_is_what_the_document_says(
    served: Any, controller: Any, document: dict[str, Any], method: str, path: str, mode: GenerationMode
) -> None:
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=served.url)
    operation = schema[path][method]
    strategy = operation.as_strategy(generation_mode=mode)
    seen: set[int] = set()

    @seed(3)
    @settings(
        max_examples=CASES if method == "POST" else CASES // 6,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def throw(case: Any) -> None:
        if isinstance(case.body, dict) and len(str(case.body)) % 4:
            # Most bodies get URLs that may be called, so that the rest of them is looked at, too.
            case.body.update({name: controller.url for name in URLS if isinstance(case.body.get(name), str)})
        answer = case.call(headers={"authorization": f"Bearer {served.KEY}"})
        seen.add(answer.status_code)
        case.validate_response(answer, checks=CHECKS)

    throw()
    assert not mode.is_positive or seen & {200, 202}, seen


def test_nobody_was_harmed(served: Any, controller: Any) -> None:
    served.quiet()
    served.unharmed()
