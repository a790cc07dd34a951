"""What a server answered, as the text that the model reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_types import CallToolResult


def text_of(result: CallToolResult) -> str:
    """Texts as they are, one after the other; what is no text is named; structured data where nothing else was said."""
    parts = [_part(each) for each in result.content]
    if not any(parts) and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(part for part in parts if part)


def _part(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            return f"[{block.type}, {block.mime_type}, {len(block.data) * 3 // 4:,} bytes]"
        case "resource_link":
            return f"[resource {block.uri}]"
        case "resource":
            text = getattr(block.resource, "text", None)
            return str(text) if text is not None else f"[resource {block.resource.uri}, not text]"
        case other:
            return f"[{other}]"
