"""`[model]` from the SDK's words for a model, which LiteLLM reads: what it would guess is written out."""

from __future__ import annotations

from typing import Any

from runner.osmosis_files.imported import Importing
from runner.osmosis_files.page import Table

LITELLM = (
    "anthropic", "azure", "azure_ai", "bedrock", "cerebras", "cohere", "dashscope", "databricks", "deepinfra",
    "deepseek", "fireworks_ai", "gemini", "groq", "huggingface", "mistral", "moonshot", "nvidia_nim", "ollama",
    "ollama_chat", "openrouter", "perplexity", "replicate", "sagemaker", "sambanova", "together_ai", "vertex_ai",
    "watsonx", "xai", "zai",
)  # fmt: skip
"""Providers that LiteLLM speaks to in another way than OpenAI's: with these, `base_url` is theirs, too."""

OPENAI_URL, OPENAI_KEY = "https://api.openai.com/v1", "OPENAI_API_KEY"


def import_model(work: Importing) -> None:
    """`[llm]` as `[model]`, and `[baseline]` as a profile."""
    ours = work.page.table("model")
    for key, value, comment in _words(work.file.table("llm")):
        ours.set(key, value, comment)
    if work.file.table("baseline"):
        _baseline(work)


def import_model_path(work: Importing) -> None:
    """`[experiment] model_path`: a LiteLLM name, or a model of the platform, which nobody else serves."""
    path, ours = work.file.get("experiment", "model_path"), work.page.table("model")
    if "/" not in path or path.partition("/")[0] in (*LITELLM, "openai", "hosted_vllm"):
        for key, value, comment in _words({"model": path}):
            ours.set(key, value, comment)
        return
    ours.set("id", path)
    advice = "a model of the platform. `serve` gets its model from the controller; for `eval`, serve it yourself and "
    work.note("model", ("experiment", "model_path"), f'{advice}set `base_url`, such as "http://localhost:8001/v1"')


def _words(said: Any) -> list[tuple[str, Any, str]]:
    """Keys of `[model]` with what there is to say of each."""
    model, base_url, key = said["model"], said.get("base_url"), said.get("api_key_env")
    provider, slash, _ = model.partition("/")
    words: list[tuple[str, Any, str]] = [("id", model, "")]
    if base_url is not None:
        words.append(("base_url", base_url, ""))
    if not slash and base_url is None:
        words.append(("provider", "litellm", "LiteLLM tells the provider by the name, as the SDK has it do"))
    elif base_url is not None and provider in LITELLM:
        words.append(("provider", "litellm", "the address is not one that speaks OpenAI's protocol"))
    if key is not None:
        words.append(("api_key", {"env": key}, ""))
    elif provider == "openai" and base_url is None:
        words.append(("api_key", {"env": OPENAI_KEY}, "what LiteLLM reads where no key is named"))
    return words


def _baseline(work: Importing) -> None:
    """A profile lies over the file, so what the baseline does not say must be said: the policy's would hold."""
    said, policy = dict(work.file.table("baseline")), work.file.table("llm")
    ours, name = work.page.table("profiles.baseline"), "profiles.baseline"
    ours.comment("osmosis-run eval --profile baseline; then osmosis-run compare RUN RUN")
    if said["model"].startswith("openai/") and "base_url" not in said and "base_url" in policy:
        said["base_url"] = OPENAI_URL
    words = {key: value for key, value, _ in _words(said)}
    if said.get("base_url") == OPENAI_URL and "api_key" not in words:
        words["api_key"] = {"env": OPENAI_KEY}
    kept = work.page.tables["model"].keys
    lost = [key for key in ("base_url", "api_key", "provider") if key in kept and key not in words]
    if lost == ["provider"]:
        words["provider"] = "openai" if "base_url" in words or said["model"].startswith("openai/") else "litellm"
        lost = []
    if not lost:
        _write(ours, words)
        return
    keys = " and ".join(f"`{key}`" for key in lost)
    advice = f"it sets no {keys}, and a profile would keep the policy's; write what it is to use, then remove the `#`"
    work.note(name, ("baseline",), advice)
    draft = Table()
    _write(draft, words)
    for line in draft.lines:
        ours.comment(line)


def _write(table: Table, words: dict[str, Any]) -> None:
    for key, value in words.items():
        table.set(f"model.{key}", value)
