"""`python`: the user's own function or `Grader` class.

Which of the signatures a function has is told by the names of its parameters, once, when it is built; what cannot work
is a `GraderMisfit` then. What it raises is a `GraderError` that names the user's line, and never a score.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from runner.diag.refused import refused
from runner.graders.grader import Grader, GraderContext, GraderMisfit, Score
from runner.graders.returned import json_safe, score_of
from runner.graders.signature import Call, call_of
from runner.graders.threads import Threads
from runner.records.failure import GraderError, JudgeUnavailable, ModelError, RolloutError

_EMPTY: Mapping[str, Any] = MappingProxyType({})
_HERE = str(Path(__file__).resolve().parent.parent)


class PythonGrader(Grader):
    """Scores by a function, sync (in a thread) or async, or by a subclass or instance of `Grader`.

    A function takes `(solution_str, ground_truth, extra_info)`, `(messages, ground_truth, metadata)` or `(ctx)`; it
    may leave out the last ones, and take `data_source`. `config` is handed to a class's constructor, and to a function
    as keyword arguments. `ground_truth` is None when the row has no label. It returns a number, a bool, a `Score`, or
    `{"score": ..., "reason": ...}`; nothing, after setting the reward on `ctx`. `made` is a config that a class is
    handed as it is. A class whose config has `concurrency.max_concurrent` grades so many at once. Raises
    `GraderMisfit`.
    """

    def __init__(
        self,
        target: Callable[..., Any] | type[Grader] | Grader,
        config: Mapping[str, Any] = _EMPTY,
        *,
        name: str = "",
        threads: Threads | None = None,
        made: Any = None,
    ) -> None:
        super().__init__(dict(config))
        self._name = name or _name_of(target)
        self._threads = threads or Threads()
        grader = _grader_of(target, self.config, self._name, made)
        self._slots: AbstractAsyncContextManager[Any] = nullcontext()
        if grader is not None:
            most = _places(getattr(grader, "config", None))
            if most is not None:
                from asyncio import Semaphore  # building graders loads nothing heavy

                self._slots = Semaphore(most)
            self.range, self.needs_label = grader.range, grader.needs_label
            self._call = Call("ctx", grader.grade, is_async=True)
        else:
            self._call = call_of(target, self.config, self._name)

    async def grade(self, ctx: GraderContext) -> Score | None:
        # What a grader does to the messages it was shown must not reach the record of the rollout.
        ctx.messages = deepcopy(ctx.messages)
        ctx.sample.messages = ctx.messages
        try:
            async with self._slots:
                returned = await self._ask(ctx)
        except GraderError:
            raise
        except ModelError as error:
            raise JudgeUnavailable(f"{self._name}: {error}", where=error.where) from error
        except RolloutError:
            raise
        except (Exception, SystemExit) as error:
            text = f"{self._name} raised {type(error).__name__}" + (f": {error}" if str(error) else "")
            raise GraderError(text, where=user_frame(error)) from error
        if returned is None and ctx.sample.reward is None and ctx.sample.remove_sample:
            return None  # taken out: it needs no reward
        score = score_of(returned, ctx.sample.reward, self._name)
        return replace(score, details={**score.details, **json_safe(ctx.artifacts)}) if ctx.artifacts else score

    async def _ask(self, ctx: GraderContext) -> Any:
        if self._call.is_async:
            return await self._call(ctx)
        returned = await self._threads.run(lambda: self._call(ctx))
        return await returned if inspect.isawaitable(returned) else returned


def _name_of(target: Any) -> str:
    return str(getattr(target, "__name__", None) or type(target).__name__)


def _places(config: Any) -> int | None:
    most = getattr(getattr(config, "concurrency", None), "max_concurrent", None)
    return most if isinstance(most, int) and most > 0 else None


def _grader_of(target: Any, config: dict[str, Any], name: str, made: Any) -> Grader | None:
    if isinstance(target, Grader):
        if config:
            raise GraderMisfit(f"{name} is a Grader that exists already, so config cannot reach it; name its class")
        return target
    if not isinstance(target, type):
        return None
    if not issubclass(target, Grader):
        raise GraderMisfit(f"{name} is a class, but no subclass of runner.Grader; inherit from it, or name a function")
    if inspect.isabstract(target):
        raise GraderMisfit(f"{name} does not define `async def grade(self, ctx)`; define it")
    if not inspect.iscoroutinefunction(target.grade):
        raise GraderMisfit(f"{name}.grade must be `async def grade(self, ctx)`; put `async` before its `def`")
    own = not isinstance(inspect.getattr_static(target, "grade"), staticmethod)
    if not _takes(target.grade, 2 if own else 1):
        wanted = "(self, ctx)" if own else "(ctx)"
        raise GraderMisfit(f"{name}.grade takes {inspect.signature(target.grade)}; it is called with {wanted}")
    if not (config or made) and not _takes(target, 1) and _takes(target, 0):
        return target()
    try:
        return target(_typed(target, config) if config else made)
    except GraderMisfit:
        raise
    except Exception as error:
        raise _unbuilt(name, error) from error


def _takes(function: Any, count: int) -> bool:
    """Whether `function` can be called with so many arguments by position; where nothing says so, it is tried."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _unbuilt(name: str, error: Exception) -> GraderMisfit:
    errors = getattr(error, "errors", None)
    if type(error).__name__ != "ValidationError" or not callable(errors):
        return GraderMisfit(
            f"{name} could not be built: {type(error).__name__}: {error}; it is called with its config, or None"
        )
    first = errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return GraderMisfit(f"the config of {name} requires {key}", key=key)
    return GraderMisfit(f"`{key}` of the config of {name} {refused(first)}", key=key)


def _typed(target: type[Grader], config: dict[str, Any]) -> Any:
    """`config` as the model that the constructor's `config` is annotated with, or as the table it is."""
    from typing import get_type_hints

    try:
        hint = get_type_hints(target.__init__).get("config")
    except Exception:  # an annotation that cannot be resolved says nothing
        return config
    validate = getattr(hint, "model_validate", None)
    return validate(config) if callable(validate) else config


def user_frame(error: BaseException) -> str:
    """`file:line in function` of the innermost frame that is neither ours nor a library's."""
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if not frame.filename.startswith((_HERE, sys.prefix, sys.base_prefix, "<frozen")):
            place = f"{frame.filename}:{frame.lineno} in {frame.name}"
    return place
