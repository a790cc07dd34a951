"""`check`: what one table cannot know alone, found without importing the user's code or rendering a template.

Each check is silent where the structure is broken already, so that one mistake is told once.
"""

from __future__ import annotations

from runner.config.loaded import Loaded


def check(loaded: Loaded, *, serving: bool = False) -> None:
    """Add every semantic finding to `loaded.report`. Nothing is checked when the file could not be read.

    `serving`: the controller brings the policy, so its key need not be set, and the server's own must be.
    """
    if loaded.config is None:
        return
    from runner.config.checks.checking import Checking
    from runner.config.checks.contents import check_contents
    from runner.config.checks.limits import check_limits
    from runner.config.checks.models import check_models
    from runner.config.checks.names import check_names
    from runner.config.checks.sandboxes import check_sandboxes
    from runner.config.checks.scores import check_scores
    from runner.config.checks.serve import check_serve
    from runner.config.checks.tests import check_tests
    from runner.config.checks.values import check_values
    from runner.config.checks.variants import check_variants

    checking = Checking(loaded, loaded.config)
    for part in (
        check_names,
        check_scores,
        check_limits,
        check_contents,
        check_sandboxes,
        check_variants,
        check_values,
    ):
        part(checking)
    check_models(checking, serving=serving)
    check_serve(checking, serving=serving)
    check_tests(checking)
