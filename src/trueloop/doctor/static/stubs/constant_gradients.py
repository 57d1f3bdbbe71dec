"""Gradients that were taken without `create_graph=True`: constants that are added to a loss."""

from __future__ import annotations

import ast

from trueloop.doctor.model.things import NOWHERE, ConstantGradient, Tensor
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall
from trueloop.doctor.static.interpreter.values import Constant, Parameters, Sequence, Unknown, Value
from trueloop.doctor.static.stubs.options import option_default


def mark(call: LibraryCall, made: Tensor, outputs: Tensor) -> None:
    """`made` is a gradient of `outputs`, without a graph."""
    node = call.node
    if not isinstance(node, ast.Call) or not call.machine.recording:
        return
    named = {each.arg: each.value for each in node.keywords}
    option = named.get("create_graph")
    given = [*node.args, *named.values()]
    last = max(given, key=lambda each: (each.lineno, each.col_offset), default=node)
    with_respect_to = call.arg(1, "inputs")
    parts = with_respect_to.values if isinstance(with_respect_to, Sequence) else [with_respect_to]
    made.gradient = ConstantGradient(
        place=call.place,
        option=NOWHERE if option is None else call.machine.place(option),
        last_argument=call.machine.place(last),
        forwards=outputs.forwards,
        inputs=frozenset(each for each in parts if isinstance(each, Tensor)),
        of_parameters=any(_are_parameters(each) for each in parts),
    )


def _are_parameters(value: object) -> bool:
    if isinstance(value, Tensor):
        return value.is_parameter or value.role == "parameter"
    return isinstance(value, Parameters)


def carry(made: Tensor, parents: tuple[Tensor, ...], *, linear: bool) -> None:
    """An operation made a tensor of `parents`; a linear one leaves a term what it is."""
    if made.graph is False:
        made.gradient = next((each.gradient for each in parents if each.gradient), None)
    made.constant_terms = frozenset(
        term for each in parents for term in each.constant_terms if linear or term.residual
    )


def combine(m: Interpreter, made: Tensor, sign: ast.operator, left: object, right: object) -> None:
    """`made` is the result of `left + right`, or of `left * right` and the like."""
    both = [each for each in (left, right) if isinstance(each, Tensor)]
    adds = isinstance(sign, (ast.Add, ast.Sub))
    scales = isinstance(sign, (ast.Mult, ast.Div)) and sum(bool(each.graph) for each in both) < 2
    carry(made, (*both,), linear=adds or scales)
    for one, other in ((left, right), (right, left)):
        gradient = one.gradient if isinstance(one, Tensor) else None
        if gradient is None or _is_constant(m, other):
            continue
        made.gradient = None
        # `gradient of one domain - mean gradient`: what a gradient is to come near to.
        target = isinstance(sign, ast.Sub) and gradient.of_parameters
        if adds and not target and other not in gradient.inputs and not _is_leaf(other):
            # `u_t - nu * u_xx` of one forward is a residual, whatever is done with it.
            forwards = other.forwards if isinstance(other, Tensor) else frozenset()
            residual = bool(forwards & gradient.forwards)
            made.constant_terms |= {gradient._replace(residual=residual)}


def add_up(made: Tensor, parents: list[Tensor]) -> None:
    """`sum([loss, penalty])`, `torch.stack([loss, penalty])`."""
    if any(each.graph for each in parents):
        found = (each.gradient for each in parents)
        made.constant_terms |= {each for each in found if each is not None}


def forget_unknown(call: LibraryCall, made: Tensor) -> None:
    """A function was given what is not known as well: the result may have a graph."""
    given: list[Value] = [*call.args, *call.kwargs.values()]
    if call.open or any(isinstance(each, Unknown) and not each.number for each in given):
        made.gradient = None


def _is_constant(m: Interpreter, value: object) -> bool:
    """A number, or a tensor without a graph: adding it, or multiplying by it, leaves a constant
    what it is."""
    if isinstance(value, Tensor):
        return value.graph is False and not _is_leaf(value)
    if not isinstance(value, Unknown):
        return isinstance(value, Constant)
    return value.number or not value.of or isinstance(option_default(m, value), (int, float))


def _is_leaf(value: object) -> bool:
    return isinstance(value, Tensor) and (value.requires_grad or value.role == "parameter")
