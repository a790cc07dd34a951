"""An agent that calls its tools in text, served: the same calls, the same wire, the same reward."""

from __future__ import annotations

from typing import Any

TOOLS = '''
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b
'''
TOML = """
[tools.add]
call = "./tools.py:add"
[graders.answer]
kind = "exact"
[graders.calls]
kind = "trajectory"
expect = [{ tool = "add", args = { a = 2, b = 2 } }]
[reward]
combine = "min"
"""


def reply(seen: Any) -> str:
    last = seen.body["messages"][-1]["content"]
    return (
        f"Final Answer: {last.removeprefix('Observation: ')}" if last.startswith("Obs") else 'Action: add(a="2", b=2)'
    )


def test_react_over_each_generation(stage: Any) -> None:
    stage.write("tools.py", TOOLS)

    async def main() -> None:
        controller = await stage.controller(chat=reply)
        async with stage.serving(TOML, workflow='agent = "react"') as server:
            for name, generation in (("first", 1), ("third", 3)):
                started = await server.start(controller.start_of(name, generation))
                assert started.status == 202
                if generation == 1:  # its controller puts these into its chat template, and they are told in words
                    assert started.body["tools"] == []
                await controller.until(1, name)
            await controller.until(3)
        assert [channel_status_reward[2] for channel_status_reward in controller.told("first")] == [1.0]
        assert controller.told("third")[-1][2] == 1.0
        for seen in controller.chats:
            assert "tools" not in seen.body and seen.body["stop"] == ["\nObservation:"]
            assert {message["role"] for message in seen.body["messages"]} <= {"system", "user", "assistant"}
        assert len(controller.chats) == 4

    stage.run(main)
