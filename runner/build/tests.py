"""`[[tests]]` to scripts that stand in for the policy."""

from __future__ import annotations

from runner.build.models import ModelMaker, build_rules
from runner.build.site import Site
from runner.config.tests import RolloutTest
from runner.records.quick import quick


@quick
class ScriptedTest:
    """A test of a whole rollout; `make_model` gives its scripted model. `name` is its own, or its place from 1."""

    name: str
    section: RolloutTest
    make_model: ModelMaker


def build_tests(site: Site) -> list[ScriptedTest]:
    """Every test whose script compiles; what does not is a finding."""
    made = []
    for index, section in enumerate(site.config.tests):
        maker = _script(site, section, index)
        if maker is not None:
            made.append(ScriptedTest(section.name or str(index + 1), section, maker))
    return made


def _script(site: Site, section: RolloutTest, index: int) -> ModelMaker | None:
    from runner.models.scripted import ScriptedModel

    rules = build_rules(site, section.rules, ("tests", index, "rules"))
    return None if rules is None else lambda: ScriptedModel(rules)
