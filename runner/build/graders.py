"""`[graders]` to graders: templates become callables, references become code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runner.build.live import GraderPart
from runner.build.site import Site
from runner.build.templates import compile_template, compile_text
from runner.config.graders import (
    ChoiceGrader,
    CommandGrader,
    CommandScore,
    ContainsGrader,
    ExactGrader,
    Extract,
    JsonSchemaGrader,
    MathGrader,
    PythonGrader,
    RegexGrader,
    RubricGrader,
    TrajectoryGrader,
)
from runner.diag.diagnostic import Path
from runner.diag.suggest import nearest
from runner.graders import (
    choice,
    contains,
    exact,
    extract,
    json_schema,
    math,
    python,
    regex,
    rubric,
    trajectory,
)
from runner.graders.extracted import Extracted
from runner.graders.grader import Grader, GraderContext, GraderMisfit
from runner.graders.labels import Expect, require_label
from runner.graders.worker import Workers
from runner.records.failure import GraderError
from runner.records.quick import quick
from runner.templates.template import Template, TemplateError
from runner.tools.mcp.names import wire_name

_NAMES = ("row", "label", "prompt")
_OWN_GUARD = (ExactGrader, ContainsGrader, RegexGrader, ChoiceGrader, MathGrader, JsonSchemaGrader, TrajectoryGrader,
              CommandGrader)  # fmt: skip
"""Kinds that bound their own dear steps. An outer deadline would count the wait for a worker, or for a sandbox, as the
grader's time."""


@quick
class _Bench:
    """What building one grader needs: the site, the grader's path, its deadline, and the shared workers."""

    site: Site
    path: Path
    timeout: float
    workers: Workers

    @property
    def dear(self) -> dict[str, Any]:
        return {"workers": self.workers, "timeout": self.timeout}

    def expect(self, text: str, *keys: str | int) -> Expect | None:
        """A template of the file as the text a grader compares with; None with a finding."""
        if text.strip() == "{{ label }}":
            return require_label
        template = compile_template(self.site, text, (*self.path, *keys), _NAMES)
        return None if template is None else _rendering(template)


def build_graders(site: Site, workers: Workers) -> list[GraderPart]:
    """Every grader of the file, in its order; one that cannot be built is a finding and left out."""
    parts = []
    for name, section in site.config.graders.items():
        timeout = section.timeout or site.config.limits.grader_time
        bench = _Bench(site, ("graders", name), timeout, workers)
        try:
            grader = _BUILDERS[type(section)](bench, section)
        except GraderMisfit as misfit:
            fact, _, cure = str(misfit).partition("; ")
            path: Path = ("graders", name) if misfit.key is None else ("graders", name, misfit.key)
            message = f"the grader `{name}` cannot work: {fact}"
            site.add("bad-value", message, path, at_key=misfit.key is None, label=cure)
            continue
        if grader is not None:
            if getattr(grader, "needs_label", False):
                site.labelled.append(name)
            outer = None if isinstance(section, _OWN_GUARD) else timeout
            parts.append(GraderPart(name, grader, section.required, outer))
    return parts


def _rendering(template: Template) -> Expect:
    needs_label = any(variable.path[0] == "label" and not variable.optional for variable in template.variables)

    def render(ctx: GraderContext) -> str:
        if needs_label:
            require_label(ctx)
        try:
            return template.render(row=ctx.row, label=ctx.label, prompt=ctx.prompt)
        except TemplateError as error:
            raise GraderError(f"what to expect cannot be rendered: {error}", kind="grader_template") from error

    return render


def _extraction(section: Extract | None) -> extract.Extraction | None:
    if section is None:
        return None
    if section.regex is not None:
        return extract.Regex(section.regex, section.group, section.take)
    if section.after is not None:
        return extract.After(section.after, section.take)
    if section.tag is not None:
        return extract.Tag(section.tag, section.take)
    if section.json_path is not None:
        return extract.JsonPath(section.json_path)
    if section.boxed:
        return extract.Boxed(section.take)
    return extract.LastLine() if section.last_line else extract.Number(section.take)


def _exact(bench: _Bench, section: ExactGrader) -> Grader | None:
    expect = bench.expect(section.expect, "expect")
    if expect is None:
        return None
    return exact.ExactGrader(
        expect,
        ignore_case=section.ignore_case,
        ignore_space=section.ignore_space,
        ignore_punctuation=section.ignore_punctuation,
        **_answer(bench, section),
    )


def _contains(bench: _Bench, section: ContainsGrader) -> Grader | None:
    several = _expectations(bench, section)
    if several is None:
        return None
    return contains.ContainsGrader(
        several, mode=section.mode, ignore_case=section.ignore_case, **_answer(bench, section)
    )


def _expectations(bench: _Bench, section: ContainsGrader) -> Sequence[Expect] | None:
    written = bench.site.origins.value_place((*bench.path, "expect", 0)) is not None
    several = [
        bench.expect(text, "expect", index) if written else bench.expect(text, "expect")
        for index, text in enumerate(section.expect)
    ]
    return None if None in several else [each for each in several if each is not None]


def _answer(bench: _Bench, section: Any) -> dict[str, Any]:
    expected = [section.expect] if isinstance(section.expect, str) else section.expect
    needs_label = any("label" in text and "{{" in text for text in expected)
    return {"extraction": _extraction(section.extract), "needs_label": needs_label, **bench.dear}


def _choice(bench: _Bench, section: ChoiceGrader) -> Grader | None:
    expect = bench.expect(section.expect, "expect")
    return None if expect is None else choice.ChoiceGrader(section.choices, expect, **_answer(bench, section))


def _math(bench: _Bench, section: MathGrader) -> Grader | None:
    expect = bench.expect(section.expect, "expect")
    if expect is None:
        return None
    return math.MathGrader(expect, tolerance=section.tolerance, **_answer(bench, section))


def _regex(bench: _Bench, section: RegexGrader) -> Grader | None:
    return regex.RegexGrader(
        section.pattern,
        ignore_case=section.ignore_case,
        full=section.full,
        extraction=_extraction(section.extract),
        **bench.dear,
    )


def _json_schema(bench: _Bench, section: JsonSchemaGrader) -> Grader | None:
    return json_schema.JsonSchemaGrader(
        section.schema_text.table, extraction=_extraction(section.extract), **bench.dear
    )


def _python(bench: _Bench, section: PythonGrader) -> Grader | None:
    found = bench.site.find(section.call, (*bench.path, "call"))
    if found is None:
        return None
    made = None
    if bench.site.found is not None and not section.config:
        from runner.build.entrypoint import grader_config  # loaded already, by whoever found it

        made = grader_config(bench.site, section.call)
    try:
        grader = python.PythonGrader(found.value, section.config, name=section.call.name, made=made)
    except GraderMisfit as misfit:
        _report_misfit(bench, section, found.value, misfit)
        return None
    extraction = _extraction(section.extract)
    return grader if extraction is None else Extracted(grader, extraction, bench.workers, bench.timeout)


def _report_misfit(bench: _Bench, section: PythonGrader, target: Any, misfit: GraderMisfit) -> None:
    fact, _, cure = str(misfit).partition("; ")
    if not callable(target):
        message = f"`{section.call.text}` is a {type(target).__name__}, not something to call"
        bench.site.add("not-callable", message, (*bench.path, "call"), label="name a function or a `Grader` class")
        return
    key, message = misfit.key, f"`{section.call.text}` cannot grade: {fact}"
    if key is not None and key in section.config:
        near = nearest(key, misfit.known)
        label = f"did you mean `{near}`?" if near else cure or "remove it"
        where = (*bench.path, "config", key)
        if "of the config" in fact:
            bench.site.add("wrong-type", fact, where, label="mend it, or what the config's class declares")
        else:
            bench.site.add("signature-extra", message, where, at_key=True, label=label)
    elif key is not None:
        label = f"add `config = {{ {key} = … }}`, or give it a default in the function"
        bench.site.add("signature-missing", message, (*bench.path, "call"), label=label)
    else:
        message, _, takes = message.partition(": (")
        notes = (f"a grader takes ({takes}",) if takes else ()
        bench.site.add("unfit-code", message, (*bench.path, "call"), label=cure, notes=notes)


def _rubric(bench: _Bench, section: RubricGrader) -> Grader | None:
    prompt = None
    if section.prompt is not None:
        template = compile_text(bench.site, section.prompt, (*bench.path, "prompt"), rubric.PROMPT_NAMES)
        if template is None:
            return None
        prompt = _judge_prompt(template)
    criteria = [
        rubric.Criterion(one.id, one.text, one.type, one.levels, one.min, one.max, one.weight)
        for one in section.criteria
    ]
    return rubric.RubricGrader(criteria, role=section.role, votes=section.votes, view=section.view, prompt=prompt)


def _judge_prompt(template: Template) -> Callable[..., str]:
    def render(**variables: Any) -> str:
        try:
            return template.render(**variables)
        except TemplateError as error:
            raise GraderError(f"the judge's prompt cannot be rendered: {error}", kind="grader_template") from error

    return render


def _trajectory(bench: _Bench, section: TrajectoryGrader) -> Grader | None:
    steps = [
        trajectory.ExpectedCall(wire_name(step.tool), _arguments(bench, step.args or {}, index))
        for index, step in enumerate(section.expect)
    ]
    return trajectory.TrajectoryGrader(steps, mode=section.mode, max_calls=section.max_calls)


def _arguments(bench: _Bench, args: Mapping[str, Any], index: int) -> dict[str, Any]:
    def made(key: str, value: Any) -> Any:
        if not isinstance(value, str) or "{{" not in value:
            return value
        return bench.expect(value, "expect", index, "args", key)

    return {key: made(key, value) for key, value in args.items()}


def _command(bench: _Bench, section: CommandGrader) -> Grader | None:
    from runner.graders import command

    text = bench.expect(section.command, "command")
    names = list(bench.site.config.sandboxes)
    name = section.sandbox or (names[0] if len(names) == 1 else None)
    if text is None or name is None or name not in names:
        return None  # which sandbox it is has been looked at by the checks of the file
    by = command.BY_EXIT
    if isinstance(section.score, CommandScore):
        regex, junit = section.score.regex, section.score.junit
        by = command.By("regex", regex) if regex is not None else command.By("junit", junit or "")
    return command.CommandGrader(
        text,
        name,
        timeout=bench.timeout,
        folder=section.folder,
        patch=section.patch,
        protect=section.protect,
        by=by,
    )


_BUILDERS: dict[type[Any], Callable[[_Bench, Any], Grader | None]] = {
    ExactGrader: _exact,
    ContainsGrader: _contains,
    RegexGrader: _regex,
    ChoiceGrader: _choice,
    MathGrader: _math,
    JsonSchemaGrader: _json_schema,
    PythonGrader: _python,
    RubricGrader: _rubric,
    TrajectoryGrader: _trajectory,
    CommandGrader: _command,
}
