"""What the file of docs/strands.md names."""

from strands import tool
from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.hooks import BeforeModelCallEvent, HookProvider


@tool
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


def short():
    return SlidingWindowConversationManager(window_size=20)


class Watch(HookProvider):
    def register_hooks(self, registry, **_):
        registry.add_callback(BeforeModelCallEvent, lambda event: None)
