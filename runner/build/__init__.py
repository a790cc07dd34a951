"""A config becomes a plan: everything imported, compiled and checked, nothing running.

The only floor that knows both config and parts. `runner.build` is also the name of the function that does it, and
whoever imports a module of this package puts the package in its place: so the package can be called like the function.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runner.build.plan import Plan


class _Package(ModuleType):
    def __call__(self, *arguments: Any, **keywords: Any) -> Plan:
        from runner.build.plan import build

        return build(*arguments, **keywords)


sys.modules[__name__].__class__ = _Package
