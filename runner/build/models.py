"""`[model]` and `[roles]` to models that a running plan opens."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, TypeAlias

from runner.build.environment import values_of
from runner.build.site import Site
from runner.build.templates import compile_guess
from runner.config.model import EnvName, ModelSection, Rule, RuleCall
from runner.config.sampling import SamplingSection
from runner.diag.diagnostic import Path
from runner.models.model import Model
from runner.models.price import Price, known_price
from runner.records.completion import Sampling
from runner.records.quick import quick
from runner.templates.template import Expression, Template

if TYPE_CHECKING:
    from runner.models.limiter import Limiter
    from runner.models.retry import Retries
    from runner.models.scripted import Rule as ScriptedRule

ModelMaker: TypeAlias = Callable[[], Model]

_RULE_NAMES = ("messages", "last", "row", "attempt", "turn", "luck")


@quick
class RolePart:
    """A model of the plan, not yet open, and how it is sampled."""

    make: ModelMaker
    sampling: Sampling


def build_models(site: Site) -> tuple[ModelMaker | None, dict[str, RolePart]]:
    """The policy's maker (None for a file without [model]) and the roles."""
    config = site.config
    model = None if config.model is None else _maker(site, config.model, ("model",), "policy")
    roles = {}
    for name, section in config.roles.items():
        made = _maker(site, section, ("roles", name), name)
        if made is not None:
            roles[name] = RolePart(made, build_sampling(section.sampling))
    return model, roles


def build_sampling(section: SamplingSection) -> Sampling:
    """`[sampling]` as plain values; a seed of "per-attempt" is filled in with each rollout."""
    return Sampling(
        temperature=section.temperature,
        top_p=section.top_p,
        max_tokens=section.max_tokens,
        stop=tuple(section.stop),
        seed=section.seed if isinstance(section.seed, int) else None,
        extra=dict(section.extra),
    )


def _maker(site: Site, section: ModelSection, path: Path, role: str) -> ModelMaker | None:
    provider = section.effective_provider
    if provider == "scripted":
        return _scripted(site, section, path)
    if provider == "replay":
        recording = section.recording.path if section.recording else None
        return None if recording is None else lambda: _replay(recording)
    if provider == "python":
        return _function(site, section, path)
    if provider == "litellm":
        return lambda: _litellm(section)
    return lambda: _chat(section)


def _chat(section: ModelSection) -> Model:
    from runner.models.chat import OPENAI, ChatModel  # a check opens no model, and does without

    price = _price(section) or (known_price(section.id or "") if section.base_url is None else None)
    return ChatModel(
        model=section.id or "",
        base_url=section.base_url or OPENAI,
        api_key=_secret(section.api_key),
        key_name=section.api_key.env if section.api_key else "",
        headers=values_of(section.headers),
        timeout=section.timeout,
        retries=_retries(section),
        limiter=_limiter(section),
        stream=section.stream,
        return_token_ids=section.return_token_ids,
        price=price,
    )


def _function(site: Site, section: ModelSection, path: Path) -> ModelMaker | None:
    from runner.models.function import FunctionMisfit, FunctionModel

    reference = section.call
    found = None if reference is None else site.find(reference, (*path, "call"))
    if found is None or reference is None:
        return None

    def make() -> FunctionModel:
        return FunctionModel(
            function=found.value,
            name=reference.text,
            timeout=section.timeout,
            retries=_retries(section),
            limiter=_limiter(section),
            price=_price(section),
        )

    try:
        make()
    except FunctionMisfit as misfit:
        site.add("unfit-code", str(misfit), (*path, "call"), label="name a function that takes `messages`")
        return None
    return make


def _litellm(section: ModelSection) -> Model:
    from runner.models.litellm import LiteLLMModel

    return LiteLLMModel(
        model=section.id or "",
        base_url=section.base_url,
        api_key=_secret(section.api_key),
        key_name=section.api_key.env if section.api_key else "",
        headers=values_of(section.headers),
        timeout=section.timeout,
        retries=_retries(section),
        limiter=_limiter(section),
        price=_price(section),
    )


def _replay(recording: FilePath) -> Model:
    from runner.models.replay import ReplayModel

    return ReplayModel(recording)


def _scripted(site: Site, section: ModelSection, path: Path) -> ModelMaker | None:
    from runner.models.scripted import ScriptedModel

    sound = build_rules(site, section.rules, (*path, "rules"))
    if sound is None:
        return None
    price = _price(section)
    return lambda: ScriptedModel(sound, price=price)


def build_rules(site: Site, rules: Sequence[Rule], path: Path) -> list[ScriptedRule] | None:
    """The compiled rules of a script; None when one does not compile, with a finding for each."""
    compiled = [_rule(site, rule, (*path, index)) for index, rule in enumerate(rules)]
    sound = [rule for rule in compiled if rule is not None]
    return sound if len(sound) == len(compiled) else None


def _rule(site: Site, rule: Rule, path: Path) -> ScriptedRule | None:
    """A compiled rule; None when one of its templates does not compile, with a finding for each."""
    from runner.models.scripted import Rule as ScriptedRule
    from runner.models.scripted import ScriptedCall

    kinds: list[tuple[type[Template] | type[Expression], str, Path]] = []
    if rule.when is not None:
        kinds.append((Expression, rule.when, (*path, "when")))
    texts = {"reply": rule.reply, "reasoning": rule.reasoning, "error": rule.error}
    kinds += [(Template, text, (*path, key)) for key, text in texts.items() if text is not None]
    for index, call in enumerate(rule.tool_calls):
        kinds += [(Template, text, where) for text, where in _call_texts(call, (*path, "tool_calls", index))]
    compiled: list[Template | Expression | None] = [
        compile_guess(site, kind, text, where, _RULE_NAMES) for kind, text, where in kinds
    ]
    if None in compiled:
        return None
    calls = tuple(ScriptedCall(call.name, call.arguments) for call in rule.tool_calls)
    return ScriptedRule(
        when=rule.when,
        reply=rule.reply,
        tool_calls=calls,
        finish_reason=rule.finish_reason,
        reasoning=rule.reasoning,
        error=rule.error,
        delay=rule.delay,
    )


def _call_texts(call: RuleCall, path: Path) -> Iterator[tuple[str, Path]]:
    if isinstance(call.arguments, str):
        yield call.arguments, (*path, "arguments")
        return
    for key, value in call.arguments.items():
        if isinstance(value, str):
            yield value, (*path, "arguments", key)


def _price(section: ModelSection) -> Price | None:
    price = section.price
    return None if price is None else Price(price.input, price.output, price.cached)


def _retries(section: ModelSection) -> Retries:
    from runner.models.retry import Retries

    return Retries(section.retries.attempts, section.retries.max_wait)


def _limiter(section: ModelSection) -> Limiter:
    from runner.models.limiter import AdaptiveLimit, FixedLimit

    limit = section.concurrency
    if limit.mode == "fixed":
        return FixedLimit(limit.max, rpm=section.rpm, tpm=section.tpm)
    return AdaptiveLimit(limit.min, limit.start, limit.max, rpm=section.rpm, tpm=section.tpm)


def _secret(name: EnvName | None) -> str | None:
    return os.environ.get(name.env) if name is not None else None
