"""An agent loop whose tools depend on the request: the start is answered with the tools of that rollout."""

from __future__ import annotations

from typing import Any

LOOP = """
    from runner import RolloutAgentLoop

    def tool(name):
        return {"type": "function", "function": {"name": name, "description": "d",
                "parameters": {"type": "object", "properties": {}, "required": []}}}

    class Loop(RolloutAgentLoop):
        name = "loop"

        def get_tools(self, request):
            if request.metadata.get("broken"):
                raise ValueError("no tools today")
            return [tool(name) for name in request.metadata.get("tools", [])]

        async def run(self, ctx):
            result = await ctx.chat(ctx.request.messages)
            return ctx.complete([*ctx.request.messages, result.message], reward=1.0)
"""


def test_tools_that_depend_on_the_request(stage: Any) -> None:
    stage.write("code.py", LOOP)

    async def main() -> None:
        controller = await stage.controller()
        async with stage.serving("", workflow='agent = "./code.py:Loop"') as server:
            for name, tools in (("a", ["search"]), ("b", ["search", "add"]), ("c", [])):
                reply = await server.start(controller.start_of(name, generation=1, metadata={"tools": tools}))
                assert reply.status == 202
                assert [tool["function"]["name"] for tool in reply.body["tools"]] == tools
            again = await server.start(controller.start_of("b", generation=1, metadata={"tools": ["search", "add"]}))
            assert [tool["function"]["name"] for tool in again.body["tools"]] == ["search", "add"]
            refused = await server.start(controller.start_of("d", generation=1, metadata={"broken": True}))
            assert refused.status == 500 and "no tools today" in refused.body["detail"]
            await controller.until(3)
            fine = await server.start(controller.start_of("d", generation=1, metadata={"tools": []}))
            assert fine.status == 202  # nothing was left of the refused start
            await controller.until(4)
        assert sorted(controller.told(name)[0][2] for name in "abcd") == [1.0] * 4

    stage.run(main)
