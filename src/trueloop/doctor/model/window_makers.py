"""Generator functions that yield lists of the next few elements of what they are given: windows of
micro-batches."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from trueloop.doctor.model.nodes import last_part

LIBRARY = frozenset("batched chunked partition_all".split())
"""Functions of itertools, more_itertools and toolz that do this."""


@dataclass(frozen=True)
class Windows:
    """The source and the size of the windows that a generator function makes."""

    source: ast.expr
    size: ast.expr
    with_rest: bool
    """It yields what is left at the end, too."""


def windows_in(function: ast.AST) -> Windows | None:
    """The windows that a generator function makes; None for other functions."""
    if not isinstance(function, ast.FunctionDef) or not function.body:
        return None
    *before, loop = function.body
    rest: ast.stmt | None = None
    if isinstance(loop, ast.If):
        rest, loop = loop, before.pop() if before else loop
    before = [each for each in before if not _is_text(each)]
    if isinstance(loop, ast.While) and rest is None:
        return _by_slices(before, loop)
    return _by_appending(before, loop, rest) if isinstance(loop, ast.For) else None


def _by_slices(before: list[ast.stmt], loop: ast.While) -> Windows | None:
    """`while window := list(islice(stream, size)): yield window`, or the same with `while True`."""
    aliases = [_alias(each) for each in before]
    if len(aliases) > 1 or None in aliases:
        return None
    body, test = list(loop.body), loop.test
    with_rest = True
    if isinstance(test, ast.NamedExpr):
        window, value = test.target.id, test.value
    elif isinstance(test, ast.Constant) and test.value and len(body) == 3:
        made, ends = body.pop(0), body.pop(0)
        if not isinstance(made, ast.Assign) or not _leaves(ends):
            return None
        window, value = getattr(made.targets[0], "id", ""), made.value
        with_rest = not isinstance(getattr(ends, "test", None), ast.Compare)
    else:
        return None
    taken = _listed(value)
    if not isinstance(taken, ast.Call) or len(taken.args) != 2 or len(body) != 1:
        return None
    if last_part(taken.func) != "islice" or not _yields(body[0], window):
        return None
    source = taken.args[0]
    for alias, original in filter(None, aliases):
        if getattr(source, "id", "") == alias:
            source = original
    return Windows(source, taken.args[1], with_rest)


def _by_appending(before: list[ast.stmt], loop: ast.For, rest: ast.stmt | None) -> Windows | None:
    """`for batch in stream: window.append(batch); if len(window) == size: yield window; …`."""
    if len(before) != 1 or len(loop.body) != 2 or loop.orelse:
        return None
    made, (added, full) = before[0], loop.body
    target = made.targets[0] if isinstance(made, ast.Assign) else getattr(made, "target", None)
    window = getattr(target, "id", "")
    value = getattr(made, "value", None)
    if not window or not (isinstance(value, ast.List) and not value.elts):
        return None
    wanted = f"{window}.append({getattr(loop.target, 'id', '')})"
    if not isinstance(full, ast.If) or full.orelse or ast.unparse(added) != wanted:
        return None
    test = full.test
    if not isinstance(test, ast.Compare) or ast.unparse(test.left) != f"len({window})":
        return None
    if not isinstance(test.ops[0], (ast.Eq, ast.GtE)) or len(full.body) != 2:
        return None
    emptied = ast.unparse(full.body[1]) in (f"{window} = []", f"{window}.clear()")
    if not emptied or not _yields(full.body[0], window):
        return None
    if rest is not None and not _yields_rest(rest, window):
        return None
    return Windows(loop.iter, test.comparators[0], rest is not None)


def _alias(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """`stream = iter(loader)`."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return None
    call = statement.value
    if last_part(call.func) != "iter" or len(call.args) != 1:
        return None
    return getattr(statement.targets[0], "id", ""), call.args[0]


def _leaves(statement: ast.stmt) -> bool:
    """`if not window: return`."""
    if not isinstance(statement, ast.If) or statement.orelse or len(statement.body) != 1:
        return False
    return isinstance(statement.body[0], (ast.Return, ast.Break))


def _yields(statement: ast.stmt, window: str) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Yield) and getattr(_listed(value.value), "id", "") == window


def _yields_rest(statement: ast.stmt, window: str) -> bool:
    body = statement.body if isinstance(statement, ast.If) else []
    return len(body) == 1 and _yields(body[0], window)


def _listed(value: ast.AST | None) -> ast.AST | None:
    """The argument of `list(…)` or `tuple(…)`; any other expression itself."""
    if isinstance(value, ast.Call) and last_part(value.func) in ("list", "tuple"):
        return value.args[0] if len(value.args) == 1 else None
    return value


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
