"""Plain tensors that methods of a parameter return: `nn.Parameter(value).to(device)`."""

from __future__ import annotations

import ast

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.things import ParameterCopy, Tensor
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall
from trueloop.doctor.static.interpreter.survey import last_name
from trueloop.doctor.static.interpreter.syntax import shape, written
from trueloop.doctor.static.interpreter.values import Unknown, Value, constant
from trueloop.doctor.static.stubs.options import default_texts


def copy_of(call: LibraryCall, parameter: Tensor) -> ParameterCopy | None:
    """The result of a method of a parameter, if that is a different tensor on some machine."""
    if not _makes_another(call):
        return None
    return ParameterCopy(parameter, call.name, call.place, _inside_out(call.node))


def _inside_out(node: ast.AST) -> str:
    """`nn.Parameter(value).to(device)` as `nn.Parameter(value.to(device))`; empty if it is not
    written so."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return ""
    made = node.func.value
    if not (isinstance(made, ast.Call) and last_name(made.func) == "Parameter" and made.args):
        return ""
    if isinstance(made.args[0], ast.Starred):
        return ""
    value = ast.Call(ast.Attribute(made.args[0], node.func.attr), node.args, node.keywords)
    return written(ast.Call(made.func, [value, *made.args[1:]], made.keywords))


_AS_IT_IS = frozenset(
    ("cpu", "torch.float32", "torch.float", "torch.FloatTensor", "True", "False", "", "None")
)


def _makes_another(call: LibraryCall) -> bool:
    """The method returns a new tensor, on some machine at least (not `.float()`)."""
    if _is_there_already(call.node):
        return False
    if call.name in ("contiguous", "pin_memory", "float", "type_as", "to", "type"):
        given = [*call.args, *call.kwargs.values()]
        says = call.name in ("to", "type")
        names = [name for each in given for name in _says(call.machine, each)]
        return says and any(name not in _AS_IT_IS for name in names)
    return True


def _is_there_already(node: ast.AST) -> bool:
    """`nn.Parameter(torch.zeros(3, device=device)).to(device)`, or `.to(device)` inside as well."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    if node.func.attr not in ("to", "cuda", "cpu", "half", "bfloat16", "double"):
        return False
    moved_to = [shape(each) for each in node.args]
    return any(
        (isinstance(each, ast.keyword) and each.arg == "device" and [shape(each.value)] == moved_to)
        or (
            isinstance(each, ast.Call)
            and last_name(each.func) == node.func.attr
            and [shape(argument) for argument in each.args] == moved_to
        )
        for each in walk(node.func.value)
    )


def _says(m: Interpreter, value: Value) -> list[str]:
    """A device or a type by its name; nothing where it is unknown: it may be the CPU."""
    if isinstance(value, Unknown):
        names = default_texts(m, value)
        return [*names, *(name for part in value.of for name in _says(m, part))]
    name = constant(value, getattr(value, "name", None))
    return [str(name)] if isinstance(name, (str, int)) else []
