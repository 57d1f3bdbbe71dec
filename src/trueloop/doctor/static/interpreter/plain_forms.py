"""Calls that do what Python has plain syntax for, turned into that syntax before a file is read:

- `getattr(optimizer, "step")` is `optimizer.step`;
- `while True:` that takes `next(batches)` first and ends at its StopIteration, or at the None or
  mark that was asked for instead, is `for batch in batches:`;
- `while (batch := next(batches, None)) is not None:` is, too.
"""

from __future__ import annotations

import ast
import itertools

from trueloop.doctor.model.nodes import FIELDS, walk


def plain(tree: ast.Module) -> ast.Module:
    """The tree, changed in place, with the plain forms in it."""
    # From the innermost nodes outwards, and without recursion: a tree may be thousands deep.
    for node in reversed(walk(tree)):
        for name in FIELDS[type(node)]:
            value = getattr(node, name, None)
            if isinstance(value, list):
                value[:] = [_plain(each) for each in value]
                _over_what_is_iterated(value, tree)
            elif isinstance(value, ast.Call):
                setattr(node, name, _plain(value))
    return tree


def _plain(node: ast.AST) -> ast.AST:
    if isinstance(node, ast.Call):
        return _attribute(node) or node
    if isinstance(node, ast.While) and not node.orelse:
        if isinstance(node.test, ast.Compare):
            return _while_not_at_end(node, node.test) or node
        if isinstance(node.test, ast.Constant) and node.test.value:
            return _until_stopped(node) or _until_at_end(node) or node
    return node


def _over_what_is_iterated(body: list[ast.AST], tree: ast.Module) -> None:
    """`rest = iter(batches)` before `for batch in rest`, and no other use of `rest`: the loop goes
    over `batches`."""
    for made, loop in itertools.pairwise(body):
        if not isinstance(made, ast.Assign) or not isinstance(loop, ast.For):
            continue
        value, name = made.value, getattr(made.targets[0], "id", "")
        if not isinstance(value, ast.Call) or not _calls(value, "iter", 1):
            continue
        if not name or getattr(loop.iter, "id", "") != name:
            continue
        uses = [each for each in walk(tree) if isinstance(each, ast.Name) and each.id == name]
        if len(uses) == 2:
            loop.iter = value.args[0]


def _attribute(node: ast.Call) -> ast.Attribute | None:
    """`getattr(owner, "name")` as `owner.name`."""
    if not _calls(node, "getattr", 2):
        return None
    owner, name = node.args
    named = name.value if isinstance(name, ast.Constant) else None
    if not isinstance(named, str) or not named.isidentifier() or named.startswith("__"):
        return None  # `__name` would get the class' name in front
    return ast.copy_location(ast.Attribute(owner, named, ast.Load()), node)


def _until_stopped(node: ast.While) -> ast.For | None:
    """`try: x = next(items)`, and a handler of StopIteration that leaves the loop."""
    first = node.body[0]
    if not isinstance(first, ast.Try) or first.finalbody or len(first.handlers) != 1:
        return None
    (handler,) = first.handlers
    if getattr(handler.type, "id", "") != "StopIteration" or handler.name:
        return None
    found = _next_of(first.body[0], 1)
    last = handler.body[-1]
    if found is None or not isinstance(last, (ast.Break, ast.Return, ast.Raise)):
        return None
    at_end = handler.body[:-1] if isinstance(last, ast.Break) else handler.body
    body = [*first.body[1:], *first.orelse, *node.body[1:]]
    return _loop(node, *found, body, at_end)


def _until_at_end(node: ast.While) -> ast.For | None:
    """`x = next(items, END)`, and `if x is END: break`."""
    found = _next_of(node.body[0], 2)
    leaving = node.body[1] if len(node.body) > 1 else None
    if found is None or not isinstance(leaving, ast.If) or leaving.orelse:
        return None
    target, items = found
    last, asked = leaving.body[-1], ast.unparse(leaving.test)
    if not isinstance(target, ast.Name) or asked != f"{target.id} is {_mark(node.body[0])}":
        return None
    if not isinstance(last, (ast.Break, ast.Return)):
        return None
    at_end = leaving.body[:-1] if isinstance(last, ast.Break) else leaving.body
    return _loop(node, target, items, node.body[2:], at_end)


def _while_not_at_end(node: ast.While, test: ast.Compare) -> ast.For | None:
    """`while (x := next(items, END)) is not END:`."""
    taken = test.left
    if not isinstance(taken, ast.NamedExpr) or not isinstance(test.ops[0], ast.IsNot):
        return None
    assigned = ast.copy_location(ast.Assign([taken.target], taken.value), node)
    found = _next_of(assigned, 2)
    if found is None or ast.unparse(test.comparators[0]) != _mark(assigned):
        return None
    return _loop(node, *found, node.body, [])


def _loop(
    node: ast.While,
    target: ast.expr,
    items: ast.expr,
    body: list[ast.stmt],
    at_end: list[ast.stmt],
) -> ast.For | None:
    again = {ast.unparse(each) for part in body for each in walk(part) if _is_stored(each)}
    if not body or ast.unparse(items) in again:
        return None  # `batches = iter(loader)` in the loop: it goes over several
    return ast.copy_location(ast.For(target, items, body, at_end), node)


def _is_stored(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


def _next_of(statement: ast.stmt, arguments: int) -> tuple[ast.expr, ast.expr] | None:
    """The target and the iterator of `target = next(iterator)`."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    value = statement.value
    if not isinstance(value, ast.Call) or not _calls(value, "next", arguments):
        return None
    if arguments == 2 and not (
        isinstance(value.args[1], ast.Name) or getattr(value.args[1], "value", 0) is None
    ):
        return None
    return statement.targets[0], value.args[0]


def _mark(statement: ast.stmt) -> str:
    """`END` of `x = next(items, END)`, as it is written."""
    value = getattr(statement, "value", None)
    return ast.unparse(value.args[1]) if isinstance(value, ast.Call) else ""


def _calls(node: ast.Call, name: str, arguments: int) -> bool:
    """`name(...)` with this number of plain arguments."""
    starred = any(isinstance(each, ast.Starred) for each in node.args)
    given = len(node.args) == arguments and not node.keywords and not starred
    return given and isinstance(node.func, ast.Name) and node.func.id == name
