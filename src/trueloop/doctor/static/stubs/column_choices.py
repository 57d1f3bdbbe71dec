"""Rows and columns of a table that arrays of numbers choose, and where columns are chosen."""

from __future__ import annotations

import ast

from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.things import NOWHERE
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.passed_arguments import origins
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls
from trueloop.doctor.static.interpreter.survey import last_name
from trueloop.doctor.static.interpreter.values import Sequence, Value


@calls("numpy.ix_")
def _grid(call: LibraryCall) -> Value:
    """`x[np.ix_(rows, columns)]`: these columns of these rows."""
    if len(call.args) == 2 and not call.open:
        return Sequence("grid", [*call.args])
    return call.unknown(*call.args)


@calls("numpy.setdiff1d")
def _rest(call: LibraryCall) -> Value:
    """`np.setdiff1d(order, part)`: all rows but these."""
    found = call.unknown(*call.args)
    found.key = f"setdiff1d{found.key}"
    return found


def where_chosen(m: Interpreter, node: ast.AST) -> Location:
    """The assignment that chooses the columns of `x[:, columns]`, if it is in the same file."""
    index = node.slice if isinstance(node, ast.Subscript) else None
    parts: list[ast.expr] = []
    if isinstance(index, ast.Tuple):
        parts = index.elts
    elif isinstance(index, ast.Call) and last_name(index.func) == "ix_":
        parts = index.args
    if len(parts) != 2 or m.modules[0] is not m.modules[-1]:
        return NOWHERE
    found = origins(m, parts[1])
    return m.place(found[-1]) if found and not isinstance(found[-1], ast.Name) else NOWHERE
