"""Chat messages to blocks and back: nothing is lost on the way, for whatever a conversation may hold."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from runner.strands.conversation import Conversation
from runner.workflows.blocks import in_chat_form, to_blocks, to_chat

texts = st.text(max_size=12)
names = st.from_regex(r"[a-zA-Z0-9_\-]{1,10}", fullmatch=True)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
objects = st.dictionaries(texts, values, max_size=3)
ids = st.from_regex(r"call_[0-9]{6}", fullmatch=True)
parts = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, texts),
    st.builds(lambda raw: {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{raw}"}},
              st.binary(max_size=6).map(lambda raw: __import__("base64").b64encode(raw).decode())),
    st.just({"type": "image_url", "image_url": {"url": "https://x/y.png"}}),
    st.just({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}),
    st.builds(lambda text: {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}, texts),
)  # fmt: skip
contents = texts | st.lists(parts, min_size=2, max_size=3)


def _call(name: str, arguments: Any, call_id: str) -> dict[str, Any]:
    text = json.dumps(arguments, ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


calls = st.builds(_call, names, objects, ids)
messages = st.one_of(
    st.builds(lambda role, content: {"role": role, "content": content}, st.sampled_from(["user", "system"]), contents),
    st.builds(lambda content: {"role": "assistant", "content": content}, contents),
    st.builds(
        lambda content, made: {"role": "assistant", "content": content, "tool_calls": made},
        st.none() | texts.filter(bool),
        st.lists(calls, min_size=1, max_size=3),
    ),
    st.builds(lambda name, content: {"role": "tool", "tool_call_id": name, "content": content}, ids, contents),
)


@settings(max_examples=150)
@given(st.lists(messages, max_size=5))
def test_chat_to_blocks_and_back(conversation: list[dict[str, Any]]) -> None:
    assert in_chat_form(to_blocks(conversation)) == conversation


blocks = st.one_of(
    st.builds(lambda text: {"text": text}, texts),
    st.builds(lambda raw: {"image": {"format": "png", "source": {"bytes": raw}}}, st.binary(max_size=6)),
)
natives = st.one_of(
    st.builds(lambda content: {"role": "user", "content": content}, st.lists(blocks, min_size=1, max_size=3)),
    st.builds(
        lambda said, uses: {"role": "assistant", "content": [*({"text": text} for text in said), *uses]},
        st.lists(texts.filter(bool), max_size=1),
        st.lists(
            st.builds(
                lambda call_id, name, given: {"toolUse": {"toolUseId": call_id, "name": name, "input": given}},
                ids, names, objects,
            ),
            min_size=1, max_size=2,
        ),
    ),
    st.builds(
        lambda results: {"role": "user", "content": results},
        st.lists(
            st.builds(
                lambda call_id, content: {
                    "toolResult": {"toolUseId": call_id, "status": "success", "content": content}
                },
                ids, st.lists(blocks, min_size=1, max_size=2),
            ),
            min_size=1, max_size=2,
        ),
    ),
)  # fmt: skip


@settings(max_examples=150)
@given(natives)
def test_blocks_to_chat_and_back(message: dict[str, Any]) -> None:
    assert to_blocks(to_chat(message)) == [message]


@settings(max_examples=100)
@given(
    st.lists(
        messages | st.builds(lambda content: {"role": "user", "content": content, "name": "ann"}, texts), max_size=5
    )
)
def test_a_conversation_that_began_with_messages_sends_them_as_they_were(given: list[dict[str, Any]]) -> None:
    conversation = Conversation()
    assert conversation.wire(conversation.begin(given), None) == given


@settings(max_examples=100)
@given(texts | st.none(), st.lists(st.tuples(st.text(max_size=8), st.text(max_size=12)), max_size=3), texts)
def test_what_the_model_said_is_sent_as_it_was(said: Any, made: list[tuple[str, str]], thought: str) -> None:
    conversation = Conversation()
    calls = [
        {"id": f"c{index}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for index, (name, arguments) in enumerate(made)
    ]
    message = {"role": "assistant", "content": said, **({"tool_calls": calls} if calls else {})}
    answered = conversation.answered(message, thought)
    assert conversation.wire([{"role": "assistant", "content": answered}], "Be brief.") == [
        {"role": "system", "content": "Be brief."},
        message,
    ]
    for index, (_, arguments) in enumerate(made):
        assert conversation.arguments(f"c{index}") == arguments


def test_blocks_that_stay_and_blocks_that_say_nothing() -> None:
    native = {"role": "user", "content": [{"text": "a"}, {"cachePoint": {"type": "default"}}]}
    assert to_blocks([native]) == [native]
    assert to_chat(native) == [{"role": "user", "content": "a"}]
    document = {"document": {"format": "pdf", "name": "d", "source": {"bytes": b"x"}}}
    guard, cited = {"guardContent": {"text": {"text": "g"}}}, {"citationsContent": {"content": [{"text": "c"}]}}
    (chat,) = to_chat({"role": "user", "content": [document, guard, cited, {"reasoningContent": {}}]})
    assert chat["content"][0]["file"] == {"file_data": "data:application/pdf;base64,eA==", "filename": "d"}
    assert [part["text"] for part in chat["content"][1:]] == ["g", "c"]
    mixed = {
        "role": "user",
        "content": [{"toolResult": {"toolUseId": "c", "content": [{"json": {"a": 1}}]}}, {"text": "t"}],
    }
    assert to_chat(mixed) == [
        {"role": "tool", "tool_call_id": "c", "content": '{"a": 1}'},
        {"role": "user", "content": "t"},
    ]


def test_ids_that_calls_lack_or_share() -> None:
    conversation = Conversation()
    function = {"name": "f", "arguments": "{}"}
    calls = [{"function": function}, {"id": "a", "function": function}, {"id": "a", "function": function}]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    first = [block["toolUse"]["toolUseId"] for block in conversation.answered(message, None)]
    again = [block["toolUse"]["toolUseId"] for block in conversation.answered(message, None)]
    assert len({*first, *again}) == 5
    assert first[1] == again[1] == "a"
    assert [block["toolUse"]["toolUseId"] for block in Conversation().answered(message, None)] == first
