"""The OpenAPI 3.1 document of the server, and the page that shows it without asking any network.

It describes what is answered, for people and for tools that throw requests at it; the dialects alone decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_MAYBE_TEXT: Schema = {"type": ["string", "null"]}
_SECONDS: Schema = {"type": ["number", "null"]}
_MESSAGES: Schema = {"type": "array", "items": {"type": "object"}}
_URL: Schema = {"type": "string", "format": "uri"}

_AGENT_LOOP: Schema = {
    "type": "object",
    "required": ["rollout_id", "server_url", "messages", "completion_params"],
    "properties": {
        "rollout_id": {"type": "string", "minLength": 1, "maxLength": 256},
        "server_url": _URL,
        "messages": _MESSAGES,
        "completion_params": {"type": "object"},
        "tool_server_url": _MAYBE_TEXT,
        "max_turns": {"type": "integer", "default": 10},
        "max_tokens_total": {"type": "integer", "default": 8192},
        "metadata": {"type": "object"},
        "api_key": _MAYBE_TEXT,
        "idempotency_key": _MAYBE_TEXT,
    },
}
_ROLLOUT: Schema = {
    "type": "object",
    "required": ["initial_messages", "chat_completions_url", "completion_callback_url"],
    "properties": {
        "rollout_id": _MAYBE_TEXT,
        "initial_messages": _MESSAGES,
        "label": _MAYBE_TEXT,
        "metadata": {"type": ["object", "null"]},
        "chat_completions_url": _URL,
        "controller_api_key": _MAYBE_TEXT,
        "llm_api_key": _MAYBE_TEXT,
        "completion_callback_url": _URL,
        "grader_callback_url": _MAYBE_TEXT,
        "agent_timeout_sec": _SECONDS,
        "grader_timeout_sec": _SECONDS,
        "extra_fields": {"type": ["object", "null"]},
    },
}
_CANCEL: Schema = {
    "type": "object",
    "description": "Exactly one of the three.",
    "properties": {
        "ids": {"type": ["array", "null"], "items": _TEXT},
        "prefix": _MAYBE_TEXT,
        "all": {"type": "boolean", "default": False},
    },
}
_STATUS: Schema = {
    "type": "object",
    "required": ["rollout_id", "status", "reward", "err_message"],
    "properties": {
        "rollout_id": _TEXT,
        "status": {"enum": ["queued", "running", "grading", "success", "failure", "cancelled", "unknown"]},
        "reward": {"type": ["number", "null"]},
        "err_message": _MAYBE_TEXT,
    },
}
_DISPOSITIONS: Schema = {
    "type": "object",
    "required": ["dispositions"],
    "properties": {
        "dispositions": {
            "type": "object",
            "additionalProperties": {"enum": ["cancelled_queued", "cancelled_running", "not_found"]},
        }
    },
}
_HEALTH: Schema = {
    "type": "object",
    "required": ["status"],
    "properties": {"status": {"enum": ["ok", "healthy", "draining"]}},
}
_ERROR: Schema = {"type": "object", "required": ["detail"], "properties": {"detail": {}}}

_BODY_ERRORS = {
    408: "The request did not arrive in time.",
    413: "The body is too large.",
    415: "The body is compressed.",
    422: "The body is malformed, or a URL in it may not be called.",
}
_START_ERRORS = {
    **_BODY_ERRORS,
    409: "A rollout with this id was accepted before, and `dedupe` is `reject`.",
    429: "There is no room; `Retry-After` says when to ask again.",
    503: "There is no room or the server is shutting down; `Retry-After` says when to ask again.",
}
_STARTS: Mapping[str, tuple[str, Schema, dict[int, str]]] = {
    "/v1/rollout/init": ("Start a rollout (agent-loop).", _AGENT_LOOP, {202: "Accepted: its id and its tools."}),
    "/rollout": ("Start a rollout.", _ROLLOUT, {202: "Accepted.", 200: "Accepted, where `start_status` is 200."}),
}


def document(title: str, version: str, starts: Sequence[str], has_key: bool, metrics: bool) -> dict[str, Any]:
    """The OpenAPI document of a server that takes starts at `starts`."""
    paths: dict[str, Any] = {}
    page = {} if has_key else {403: "A page in a browser asks, and the server has no key."}
    for path in starts:
        said, body, fine = _STARTS.get(path, _STARTS["/rollout"])
        answers = {str(status): _answer(text, {"type": "object"}) for status, text in fine.items()}
        paths[path] = {"post": _operation(said, answers, {**_START_ERRORS, **page}, has_key, body)}
    paths["/rollout/{rollout_id}/status"] = {
        "get": {
            **_operation(
                "How a rollout stands; `unknown` for any id that is not known.",
                _ok("How it stands.", _STATUS),
                page,
                has_key,
            ),
            "parameters": [{"name": "rollout_id", "in": "path", "required": True, "schema": {**_TEXT, "minLength": 1}}],
        }
    }
    said = "Cancel rollouts by id, by prefix, or all. An empty prefix is all."
    paths["/rollout/cancel"] = {
        "post": _operation(
            said, _ok("What became of each of them.", _DISPOSITIONS), {**_BODY_ERRORS, **page}, has_key, _CANCEL
        )
    }
    paths["/health"] = {
        "get": _operation(
            "Whether the server is well, and how full.", _ok("How full it is, and what is owed.", _HEALTH), {}, False
        )
    }
    if has_key:
        said = "The same, for who has the key."
        paths["/platform/health"] = {
            "get": _operation(said, _ok("How full it is, and what is owed.", _HEALTH), {}, True)
        }
    if metrics:
        text = {"200": {"description": "Prometheus text.", "content": {"text/plain": {"schema": _TEXT}}}}
        paths["/metrics"] = {"get": _operation("Numbers for Prometheus.", text, {}, False)}
    found: dict[str, Any] = {"openapi": "3.1.0", "info": {"title": title, "version": version}, "paths": paths}
    if has_key:
        found["components"] = {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}}
    return found


def _operation(
    said: str, answers: Mapping[str, Any], errors: Mapping[int, str], has_key: bool, body: Schema | None = None
) -> dict[str, Any]:
    wrong = {str(status): _answer(text, _ERROR) for status, text in errors.items()}
    if has_key:
        wrong["401"] = _answer("The key is missing or wrong.", _ERROR)
    found: dict[str, Any] = {"summary": said, "responses": {**answers, **dict(sorted(wrong.items()))}}
    if body is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    if has_key:
        found["security"] = [{"key": []}]
    return found


def _ok(text: str, schema: Schema) -> dict[str, Any]:
    return {"200": _answer(text, schema)}


def _answer(text: str, schema: Schema) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def docs_page(api: Mapping[str, Any]) -> bytes:
    """The document as one page of HTML that loads nothing from anywhere."""
    rows = []
    for path, operations in api["paths"].items():
        for method, operation in operations.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            required = body.get("required", ())
            fields = ", ".join(f"<b>{name}</b>" if name in required else name for name in body.get("properties", ()))
            answers = "".join(
                f"<li>{status} {escape(answer['description'])}</li>"
                for status, answer in operation["responses"].items()
            )
            rows.append(
                f"<section><h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(operation['summary'])}</p>"
                f"{f'<p>Fields: {fields}</p>' if fields else ''}<ul>{answers}</ul></section>"
            )
    title = escape(f"{api['info']['title']} {api['info']['version']}".strip())
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        "<style>body{font:16px/1.5 sans-serif;max-width:50em;margin:2em auto;padding:0 1em}</style>"
        f'<h1>{title}</h1><p>The whole document: <a href="openapi.json">openapi.json</a></p>{"".join(rows)}\n'
    ).encode()
