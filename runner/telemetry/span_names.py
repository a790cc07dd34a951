"""The names of spans and attributes: the GenAI conventions', and those of the first generation's server.

The GenAI conventions are still unstable, so what we use of them is copied here and imported from nowhere. Where they
name a span their name is used, and `osmosis.span` holds the older one; spans they do not know keep the older name.
The attributes of both are set, for none of them conflict.
"""

from __future__ import annotations

OPERATION = "gen_ai.operation.name"
WORKFLOW_NAME = "gen_ai.workflow.name"
CONVERSATION = "gen_ai.conversation.id"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
RESPONSE_ID = "gen_ai.response.id"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL = "gen_ai.tool.call.id"
TOOL_TYPE = "gen_ai.tool.type"
EVALUATION = "gen_ai.evaluation.result"
EVALUATION_NAME = "gen_ai.evaluation.name"
EVALUATION_SCORE = "gen_ai.evaluation.score.value"
ERROR_TYPE = "error.type"

INVOKE_WORKFLOW, CHAT, EXECUTE_TOOL = "invoke_workflow", "chat", "execute_tool"

OLD_NAME = "osmosis.span"
INIT, RUN, ERROR = "rollout.init", "rollout.run", "rollout.error"
LLM_CHAT, LLM_COMPLETE = "llm.chat_completions", "llm.complete_rollout"
TOOL, HTTP = "tool.execute", "http.request"
