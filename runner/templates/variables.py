"""Which names a template needs, and where it says them.

Only what is certain before anything runs: `row.a["b"]` is a reference, `row[x]` is one to `row` alone. Names the
template makes itself (loops, `set`, macros) are left out; what it asks about first (`is defined`, `default`) is
optional.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from jinja2 import nodes

from runner.templates.plain import Variable
from runner.templates.problem import Path

_STEP = re.compile(r"""\s*(?:\.\s*(\w+)|\[\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')\s*\])""")
_NAME = re.compile(r"\w+")


def path_of(node: nodes.Node) -> Path | None:
    """The path of a static reference, or None for any other expression."""
    if isinstance(node, nodes.Name):
        return (node.name,)
    if isinstance(node, nodes.Getattr):
        path = path_of(node.node)
        return None if path is None else (*path, node.attr)
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str):
        path = path_of(node.node)
        return None if path is None else (*path, node.arg.value)
    return None


def find_variables(tree: nodes.Node, text: str, globals_: Iterable[str]) -> list[Variable]:
    """Every reference in order of its place. `text` is what was parsed; `globals_` are names that always exist."""
    walker = _Walker(text)
    walker.visit(tree, set(globals_), frozenset())
    return sorted(walker.found, key=lambda variable: variable.offset)


class _Walker:
    """Visits each node with the names bound so far (`bound`, grown in place by `set`) and the paths asked about."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Variable] = []

    def visit(self, node: nodes.Node, bound: set[str], asked: frozenset[Path]) -> None:
        match node:
            case nodes.Name() | nodes.Getattr() | nodes.Getitem() if path_of(node) is not None:
                self.record(node, bound, asked)
            case nodes.Call():
                self.call(node, bound, asked)
            case nodes.Filter(name="default" | "d", node=nodes.Node() as inner):
                self.lenient(inner, bound, asked)
                self.each([*node.args, *node.kwargs], bound, asked)
            case nodes.Test(name="defined" | "undefined"):
                self.lenient(node.node, bound, asked)
            case nodes.CondExpr() | nodes.If():
                self.condition(node, bound, asked)
            case nodes.And() | nodes.Or():
                self.visit(node.left, bound, asked)
                self.visit(node.right, bound, asked | set(_asked(node.left)))
            case nodes.For() | nodes.Macro() | nodes.CallBlock() | nodes.With() | nodes.Assign() | nodes.AssignBlock():
                self.binding(node, bound, asked)
            case nodes.FilterBlock() | nodes.Block() | nodes.Scope():
                self.each(node.iter_child_nodes(), set(bound), asked)
            case _:
                self.each(node.iter_child_nodes(), bound, asked)

    def each(self, children: Iterable[nodes.Node], bound: set[str], asked: frozenset[Path]) -> None:
        for child in children:
            self.visit(child, bound, asked)

    def record(self, node: nodes.Node, bound: set[str], asked: frozenset[Path], optional: bool = False) -> None:
        path = path_of(node)
        root = node
        while not isinstance(root, nodes.Name):
            root = root.node  # type: ignore[attr-defined]
        if path is None or root.name in bound or root.ctx != "load":
            return
        offset = root.lineno - 1
        optional = optional or any(path[: len(known)] == known for known in asked)
        self.found.append(Variable(path, offset, self.length(offset, len(path)), optional))

    def length(self, offset: int, steps: int) -> int:
        match = _NAME.match(self.text, offset)
        end = match.end() if match else offset + 1
        for _ in range(steps - 1):
            step = _STEP.match(self.text, end)
            end = step.end() if step else end
        return end - offset

    def lenient(self, node: nodes.Node, bound: set[str], asked: frozenset[Path]) -> None:
        if path_of(node) is not None:
            self.record(node, bound, asked, optional=True)
        else:
            self.visit(node, bound, asked)

    def call(self, node: nodes.Call, bound: set[str], asked: frozenset[Path]) -> None:
        """`row.name.upper()` needs `row.name`; `row.get("x")` asks for `row.x`."""
        callee = node.node
        if isinstance(callee, nodes.Getattr):
            first = node.args[0] if node.args else None
            if callee.attr == "get" and isinstance(first, nodes.Const) and isinstance(first.value, str):
                self.record_get(callee, first.value, bound, asked)
            else:
                self.visit(callee.node, bound, asked)
        else:
            self.visit(callee, bound, asked)
        self.each([*node.args, *node.kwargs], bound, asked)
        self.each([extra for extra in (node.dyn_args, node.dyn_kwargs) if extra is not None], bound, asked)

    def record_get(self, callee: nodes.Getattr, key: str, bound: set[str], asked: frozenset[Path]) -> None:
        before = len(self.found)
        self.visit(callee.node, bound, asked)
        if len(self.found) == before + 1 and path_of(callee.node) is not None:
            known = self.found.pop()
            self.found.append(Variable((*known.path, key), known.offset, known.length, optional=True))

    def condition(self, node: nodes.CondExpr | nodes.If, bound: set[str], asked: frozenset[Path]) -> None:
        self.visit(node.test, bound, asked)
        known = asked | set(_asked(node.test))
        self.each((child for child in node.iter_child_nodes() if child is not node.test), bound, known)

    def binding(self, node: nodes.Node, bound: set[str], asked: frozenset[Path]) -> None:
        match node:
            case nodes.For():
                self.visit(node.iter, bound, asked)
                inner = bound | _names(node.target) | {"loop"}
                self.each([*([node.test] if node.test else []), *node.body], inner, asked)
                self.each(node.else_, set(bound), asked)
            case nodes.Macro() | nodes.CallBlock():
                if isinstance(node, nodes.Macro):
                    bound.add(node.name)
                else:
                    self.visit(node.call, bound, asked)
                self.each(node.defaults, bound, asked)
                inner = bound | {name.name for name in node.args} | {"varargs", "kwargs", "caller"}
                self.each(node.body, inner, asked)
            case nodes.With():
                self.each(node.values, bound, asked)
                self.each(node.body, bound.union(*map(_names, node.targets)), asked)
            case nodes.Assign():
                self.visit(node.node, bound, asked)
                bound |= _names(node.target)
            case nodes.AssignBlock():
                self.each([*([node.filter] if node.filter else []), *node.body], set(bound), asked)
                bound |= _names(node.target)


def _names(target: nodes.Node) -> set[str]:
    if isinstance(target, nodes.Name):
        return {target.name}
    return {name.name for name in target.find_all(nodes.Name)}


def _asked(test: nodes.Node) -> Iterator[Path]:
    """Paths whose presence this condition asks about: `row.x is defined`, `"x" in row`, `row.get("x")`."""
    for node in (test, *test.find_all((nodes.Test, nodes.Compare, nodes.Call))):
        match node:
            case nodes.Test(name="defined" | "undefined", node=inner):
                path = path_of(inner)
            case nodes.Compare(
                expr=nodes.Const(value=str(key)), ops=[nodes.Operand(op="in" | "notin", expr=container)]
            ):
                path = path_of(container)
                path = None if path is None else (*path, key)
            case nodes.Call(node=nodes.Getattr(attr="get", node=inner), args=[nodes.Const(value=str(key)), *_]):
                path = path_of(inner)
                path = None if path is None else (*path, key)
            case _:
                path = None
        if path is not None:
            yield path
