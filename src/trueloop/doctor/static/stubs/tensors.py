"""Tensors: what operations keep of their history, and `backward`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any, TypeVar

from trueloop.doctor.model.events import FlagsSet, GradRead, ManualUpdate
from trueloop.doctor.model.table_events import Sliced
from trueloop.doctor.model.things import Activation, Model, Tensor
from trueloop.doctor.model.value_events import ColumnsPicked
from trueloop.doctor.model.vocabulary import names_a_tensor
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.values import (
    CombinedIterable,
    Constant,
    DictValue,
    LibraryMethod,
    OpaqueObject,
    Sequence,
    Unknown,
    Value,
    constant,
    varies,
)
from trueloop.doctor.static.stubs import constant_gradients, tensor_shapes as shapes
from trueloop.doctor.static.stubs.column_choices import where_chosen
from trueloop.doctor.static.stubs.group_means import notice_group
from trueloop.doctor.static.stubs.label_order import notice_slice
from trueloop.doctor.static.stubs.loss_averages import averages, is_literal
from trueloop.doctor.static.stubs.manual_updates import GRADIENT, notice, set_gradient
from trueloop.doctor.static.stubs.padded_lists import masked_out
from trueloop.doctor.static.stubs.smooth_maxima import factors_taken_back
from trueloop.doctor.static.stubs.thawing import thaws_later

T = TypeVar("T")


def derive(
    m: Interpreter,
    node: ast.AST,
    *parents: Tensor,
    graph: bool | None = True,
    keeps_loss: bool = False,
    same: bool = False,
) -> Tensor:
    """The result of an operation on tensors.

    `same`: the values are the same, in a different shape or type; `keeps_loss`: a loss stays a
    loss.
    """
    recorded = m.recording and graph is not False
    on: bool | None = False
    history, known, fetched, of_gradients = 0, bool(parents), False, False
    made = Tensor(made=m.place(node))
    for parent in parents:
        history += len(parent.models) + len(parent.forwards)
        if recorded and not on:
            if parent.graph or parent.role == "parameter" or parent.requires_grad:
                on = True
            elif parent.graph is None:
                on = None
        known = known and parent.known
        fetched = fetched or parent.fetched > 0
        of_gradients = of_gradients or parent.of_gradients or parent.grad_of is not None
        made.scaled_by = made.scaled_by or parent.scaled_by
        made.loader = made.loader or parent.loader
        made.criteria = _with(made.criteria, parent.criteria)
        if parent.fed_by:
            made.fed_by = _with(made.fed_by, parent.fed_by)
    m.spend(history >> 5, node)
    made.graph, made.known = on, known
    if on is not False:
        for parent in parents:
            made.models = _with(made.models, parent.models)
            made.forwards = _with(made.forwards, parent.forwards)
            made.inputs = _with(made.inputs, parent.inputs)
        leaves = [parent for parent in parents if parent.requires_grad]
        if leaves:
            made.inputs |= frozenset(leaves)
    losses = [parent for parent in parents if parent.is_loss] if keeps_loss or same else []
    if losses:
        made.is_loss, made.reduced = True, _common(loss.reduced for loss in losses)
        made.divided = _common(loss.divided for loss in losses)
    if fetched:
        made.fetched = min(each.fetched for each in parents if each.role != "parameter")
    made.of_gradients = of_gradients
    if not m.turns:
        made.of = parents
    if same and parents:
        first = parents[0]
        made.activation, made.role = first.activation, first.role if not on else ""
        made.values, made.padding = first.values, first.padding
        made.reduced, made.volatile = first.reduced, first.volatile
        made.one_hot_of, made.fill = first.one_hot_of, first.fill
    if recorded and any(parent.gradient or parent.constant_terms for parent in parents):
        constant_gradients.carry(made, parents, linear=keeps_loss or same)
    return made


def _with(found: frozenset[T], more: frozenset[T]) -> frozenset[T]:
    """Both together; one that has them all is not copied."""
    if more is found or not more:
        return found
    return found | more if found else more


def _common(values: Iterable[T]) -> T | None:
    found = set(values)
    return found.pop() if len(found) == 1 else None


_HOLDERS = (Unknown, Sequence, DictValue, LibraryMethod, OpaqueObject)


def tensors_in(m: Interpreter, value: object, node: ast.AST, depth: int = 4) -> list[Tensor]:
    """The tensors that a value is made of; an unknown value's come from what it was made of."""
    m.look(node)
    if isinstance(value, Tensor):
        return [value]
    if depth == 0 or not isinstance(value, _HOLDERS):
        return []
    if isinstance(value, Unknown) and (value.number or not value.of):
        return []
    parts: Iterable[Value] = ()
    if isinstance(value, Sequence):
        parts = value.values
    elif isinstance(value, DictValue):
        parts = [*value.entries.values(), *value.rest]
    elif isinstance(value, (Unknown, LibraryMethod)):
        parts = value.of if isinstance(value, Unknown) else [value.receiver]
        found = [part for part in parts if isinstance(part, Model)]
        if found:
            seen = Tensor(
                graph=m.recording, models=frozenset(found) if m.recording else frozenset()
            )
            return [seen, *(t for p in parts for t in tensors_in(m, p, node, depth - 1))]
    elif isinstance(value, OpaqueObject):
        parts = value.arguments.values()
    return [tensor for part in parts for tensor in tensors_in(m, part, node, depth - 1)]


def as_tensor(m: Interpreter, value: Value | None, node: ast.AST) -> Tensor:
    """A value taken for a tensor, with whatever history it can have."""
    if isinstance(value, Tensor):
        return value
    made = derive(m, node, *tensors_in(m, value, node), keeps_loss=True)
    if made.is_loss and isinstance(value, Unknown):
        made.divided = None  # what it went through may have divided it
    if isinstance(value, Unknown) and value.of and value.key.endswith("]"):
        made.rows_index = m.key(value.of[-1])
    return made


def combine(m: Interpreter, sign: ast.operator, left: Value, right: Value, node: ast.AST) -> Tensor:
    """Arithmetic with a tensor on at least one side."""
    mine = [each for each in (left, right) if isinstance(each, Tensor)]
    other = right if isinstance(left, Tensor) else left
    parents = list(mine)
    if not isinstance(other, Tensor):
        parents += tensors_in(m, other, node) if not _is_number(other) else []
    made = derive(m, node, *parents, graph=not isinstance(sign, shapes.BITWISE), keeps_loss=True)
    if isinstance(sign, ast.Div) and _takes_back_a_factor(m, left, node):
        made.reduced, made.divided = mine[0].reduced, mine[0].divided
    elif isinstance(sign, (ast.Mult, ast.Div)) and made.is_loss:
        if not isinstance(other, Tensor):
            if isinstance(sign, ast.Div) and other is right:
                made.divided_by = m.size(other)
            one = isinstance(other, Constant) and other.value in (1, 1.0, -1)
            averaged = averages(sign, left, right, node)
            if averaged:
                made.reduced, made.divided, made.divided_by = "mean", False, averaged
            elif not one:
                made.divided = True
            elif isinstance(sign, ast.Div) and not is_literal(node):
                made.divided = None  # what is computed may be 1 in this turn alone
        else:
            # Weighted by a tensor: by tokens, by class, by an uncertainty that is learnt.
            made.divided = None
    elif isinstance(sign, (ast.Add, ast.Sub)) and made.is_loss:
        losses = [each for each in mine if each.is_loss]
        made.divided = _common(each.divided for each in losses)
        made.reduced = _common(each.reduced for each in losses)
    elif isinstance(sign, ast.Pow):
        made.is_loss = False
    if isinstance(sign, ast.Add):
        made.terms = (left, right)
    if made.gradient or made.constant_terms or any(each.gradient for each in mine):
        constant_gradients.combine(m, made, sign, left, right)
    made.dtype = shapes.dtype_of_arithmetic(sign, left, right)
    made.shape = shapes.of_arithmetic(sign, left, right)
    if isinstance(sign, ast.MatMult):
        made.activation = of_product(m, left, right, node)
    elif isinstance(sign, ast.Add):
        made.activation = _with_bias(left, right)
    elif isinstance(sign, ast.Mult) and len(mine) == 2:
        made.one_hot_of = _times_one_hot(*mine)
    return made


def _takes_back_a_factor(m: Interpreter, left: Value, node: ast.AST) -> bool:
    """`softplus(8 * z).mean() / 8`: the mean that was meant, which nothing averages further."""
    reduced = isinstance(left, Tensor) and left.reduced is not None
    return reduced and id(node) in factors_taken_back(m.modules[-1].tree)


def _times_one_hot(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor] | None:
    """The labels of the factor that has one-hot rows, and the other factor."""
    for rows, factor in ((left, right), (right, left)):
        labels, other = rows.one_hot_of or (None, None)
        if labels is not None and other is None:
            return labels, factor
    return None


def of_product(m: Interpreter, left: object, right: object, node: ast.AST) -> Activation | None:
    """A matrix product of a layer's output, or with a parameter, is linear."""
    kinds = [_kind_of(each) for each in (left, right)]
    is_linear = "linear" in kinds or (kinds.count(None) == 1 and "parameter" in kinds)
    if not is_linear or any("log" in (each or "") for each in kinds):
        return None
    return Activation("linear", None, m.place(node))


def _kind_of(factor: object) -> str | None:
    if not isinstance(factor, Tensor):
        return None
    if factor.activation is not None:
        return factor.activation.kind
    return "parameter" if factor.role == "parameter" or factor.is_parameter else None


def _with_bias(left: object, right: object) -> Activation | None:
    """A linear output and a parameter are one again."""
    for output, bias in ((left, right), (right, left)):
        if _kind_of(bias) == "parameter" and _kind_of(output) == "linear":
            return output.activation if isinstance(output, Tensor) else None
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, Constant) or (isinstance(value, Unknown) and not value.of)


def add_up(m: Interpreter, source: Any, node: ast.AST) -> Value:
    """`sum(values)`, `torch.stack(values)`, `torch.cat(values)`."""
    parents = tensors_in(m, source, node)
    if not parents:
        values = source.values if isinstance(source, Sequence) else []
        numbers = [each.value for each in values if isinstance(each, Constant)]
        if values and len(numbers) == len(values) and not source.open:
            try:
                return Constant(sum(numbers))
            except TypeError:
                pass
        return m.unknown(node, (source,))
    made = derive(m, node, *parents, keeps_loss=True)
    made.terms, made.padding = source, parents[0].padding
    made.dtype = shapes.common_dtype(parents)
    if m.batch_turn() is None:
        made.loader = None  # outputs of a whole pass, and not of a batch
    constant_gradients.add_up(made, parents)
    return made


# ------------------------------------------------------------------------------- parts


def parts_of(m: Interpreter, value: Tensor, count: int, node: ast.AST) -> list[Value]:
    """`inputs, targets = batch`. A loss is one number: where a function's other losses are tuples,
    nothing is known of what comes after the first."""
    if count and value.is_loss and value.reduced is not None:
        return [value, *(m.unknown(node, (), key=f"{m.key(value)}[{i}]") for i in range(1, count))]
    parts = [derive(m, node, value, keeps_loss=True) for _ in range(count)]
    for position, part in enumerate(parts):
        part.loader, part.position = value.loader, position
        part.grad_of, part.data_of = value.grad_of, value.data_of
        if value.role == "batch":
            part.role = "batch"
            if count > 1 and position == 0:
                part.role = "input"
            elif count > 1 and position == count - 1:
                part.role = "target"
    return [*parts]


def _columns(index: Value) -> Tensor | None:
    """The second index of `p[torch.arange(n), y]`."""
    if not isinstance(index, Sequence) or len(index.values) != 2:
        return None
    rows, columns = index.values
    numbers = isinstance(rows, CombinedIterable) and rows.kind == "range"
    listed = isinstance(rows, Tensor) and rows.counts
    return columns if (numbers or listed) and isinstance(columns, Tensor) else None


def is_over_samples(value: Tensor) -> bool:
    """It came out of a function that ran over its first dimension."""
    return value.activation is not None and value.activation.dim == 0


def row_of(m: Interpreter, value: Tensor, node: ast.AST) -> Tensor:
    """A part of a tensor, or of the tuple of parts that it was split into."""
    made = derive(m, node, value)
    made.shape = value.pieces or (value.shape[1:] if value.shape else None)
    made.dtype = value.dtype
    if value.activation is not None and value.activation.kind == "linear":
        made.activation = value.activation  # a logit of logits
    if value.pieces:
        notice_slice(m, value, None, made, node)
    return made


_TARGETS = ("target", "label", "y", "labels", "targets", "class", "mask")


def element(m: Interpreter, value: Tensor, index: Value, node: ast.AST) -> Tensor:
    """`tensor[index]`: of a batch, one of its parts."""
    columns = _columns(index)
    if columns is not None and is_over_samples(value):
        m.emit(ColumnsPicked, node, source=value, columns=columns)
    made = derive(m, node, value, keeps_loss=True, same=value.role in ("input", "target"))
    made.loader = value.loader
    if value.is_loss or shapes.only_adds_axes(index):
        made.position = value.position
    elif value.role != "batch" and isinstance(key := constant(index), str):
        made.position = None if names_a_tensor(key) else 0  # no tensor has entries with names
    if value.activation is not None and value.activation.kind != "argmax":
        made.activation = value.activation._replace(dim=None)
    if value.role == "batch":
        made.role = "batch"
        key = constant(index)
        if isinstance(key, str):
            made.role = "target" if any(word in key.lower() for word in _TARGETS) else "input"
        elif isinstance(key, int):
            made.role = "input" if key == 0 else "target"
    else:
        made.shape, made.dtype = shapes.indexed(value.shape, index), value.dtype
        made.padding = value.padding if isinstance(index, Sequence) else made.padding
    if isinstance(index, (Tensor, Unknown)):
        made.rows_of, made.rows_index = value, m.key(index)
        made.several_rows = index.shape is not None and len(index.shape) == 1 != index.shape[0]
    made.grad_of, made.data_of = value.grad_of, value.data_of
    notice_slice(m, value, index, made, node)
    if take(m, value, index, made, node):
        made.of = (value, index)
    return made


def take(m: Interpreter, data: Value, index: Value, result: Value, node: ast.AST) -> bool:
    """Inform the rules of a part of some data: of an index that does not change with the
    batches."""
    if not _is_fixed(m, index):
        return False
    notice_group(m, data, result, node)
    chosen_at = where_chosen(m, node)
    m.emit(Sliced, node, data=data, index=index, result=result, chosen_at=chosen_at)
    return True


def _is_fixed(m: Interpreter, index: Value) -> bool:
    if m.inside_models:
        return False
    if m.batch_turn() is None:
        return True
    return bool(index.of) if isinstance(index, Tensor) else not varies(index)


def attribute_of(m: Interpreter, value: Tensor, name: str, node: ast.AST) -> Value:
    """`tensor.name`."""
    if name == "data":
        made = derive(m, node, value, graph=False, same=True)
        made.grad_of = value.grad_of
        made.data_of = value if value.role == "parameter" else None
        return made
    if name in GRADIENT:
        m.emit(GradRead, node, target=value, **m.modules[-1].survey.reading_of(node))
        made = Tensor(made=m.place(node))
        made.grad_of = value
        return made
    if name == "shape":
        sizes = value.shape
        if sizes is not None:
            known = (Constant(s) if isinstance(s, int) else Unknown(str(s)) for s in sizes)
            return Sequence("tuple", [*known])
        return Unknown(
            f"{value.name}.shape<{m.number(value)}>", (value,), loop_variant=True, number=True
        )
    if name in ("T", "mT", "H", "real", "imag"):
        made = derive(m, node, value, keeps_loss=True)
        turns = name in ("T", "H") and value.shape is not None
        made.shape = value.shape[::-1] if turns and value.shape is not None else None
        return made
    if name in ("requires_grad", "is_cuda", "is_leaf", "device", "dtype", "ndim", "grad_fn"):
        return Unknown(f"{value.name}.{name}", ())
    uses = m.modules[-1].survey.uses.get(name, ())
    if "()" in uses:
        return LibraryMethod(value, name)
    # The output of a model may be a structure: `outputs.loss`, `outputs.logits`.
    made = derive(m, node, value, keeps_loss=True)
    if "loss" in name:
        made.is_loss, made.reduced, made.divided = True, None, False
    if value.role == "batch":
        made.role, made.loader = "batch", value.loader
    return made


_WITH_WEIGHT = re.compile(
    r"torch\.nn\.(Linear|Bilinear|Embedding(Bag)?|Conv(Transpose)?\dd|\w+Norm\dd?)$"
)


def has_weight(model: Model) -> bool:
    """A layer of torch's with the parameters `weight` and `bias`."""
    return _WITH_WEIGHT.match(model.kind) is not None


def _has_weight_alone(layer: Model) -> bool:
    """It was made without a bias."""
    return has_weight(layer) and layer.arguments.get("bias") is False


def parameter_of(m: Interpreter, layer: Model, name: str, node: ast.AST) -> Tensor:
    """`layer.weight`."""
    found = Tensor(
        role="parameter", graph=False, models=frozenset([layer]), made=m.place(node),
        name=f"{m.key(layer)}.{name}",
    )  # fmt: skip
    found.entry = name
    return found


def set_attribute(m: Interpreter, tensor: Tensor, name: str, value: object, node: ast.AST) -> None:
    """`tensor.name = value`."""
    set_gradient(m, tensor, name, value, node)
    if name == "data" and tensor.grad_of is None:
        m.emit(ManualUpdate, node, target=tensor)
    elif name == "requires_grad":
        needs = constant(value)
        tensor.requires_grad = needs is not False
        flagged(m, tensor, needs, node)
    elif name not in GRADIENT:
        tensor.attributes[name] = value


def flagged(m: Interpreter, tensor: Tensor, needs: bool | None, node: ast.AST) -> None:
    """`requires_grad` of a parameter was switched: one by one, those of a whole module are. A
    single one may be the part that learns."""
    one_of_several = bool(tensor.entry) and not all(
        _has_weight_alone(each) for each in tensor.models
    )
    if tensor.role == "parameter" and (not one_of_several or needs is not False):
        later = thaws_later(m.modules[-1].tree)
        for model in tensor.models:
            m.emit(FlagsSet, node, model=model, requires_grad=needs, thawed_later=later)


def set_element(m: Interpreter, tensor: Tensor, value: object, node: ast.AST) -> None:
    """`tensor[...] = value`."""
    tensor.padding |= _filled_up(tensor, node) | masked_out(tensor, value, node)
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Tuple):
        tensor.fill = None
    if tensor.grad_of is not None or tensor.data_of is not None:
        notice(m, tensor, value, node)
    elif isinstance(value, Tensor):
        tensor.fed_by |= value.fed_by
        if value.graph:
            tensor.graph = True
            tensor.models |= value.models
            tensor.forwards |= value.forwards


def _filled_up(tensor: Tensor, node: ast.AST) -> frozenset[float]:
    """The number that is left in a tensor full of it when the beginnings of its rows are written:
    `batch[i, : len(tokens)] = tokens`."""
    index = node.slice if isinstance(node, ast.Subscript) else None
    last = index.elts[-1] if isinstance(index, ast.Tuple) and index.elts else None
    if tensor.fill is None or not isinstance(last, ast.Slice) or last.upper is None:
        return frozenset()
    return frozenset() if isinstance(last.upper, ast.Constant) else frozenset({tensor.fill})


def call_foreign_method(
    m: Interpreter, model: Model, name: str, given: list[Value], node: ast.AST
) -> Value:
    """A method of a module that cannot be read: `model.encode(x)`."""
    parents = [tensor for value in given for tensor in tensors_in(m, value, node)]
    if not parents and "loss" not in name:
        # `model.configure_optimizers(...)`, `model.init_hidden(...)`: anything.
        return m.unknown(node, [model, *given])
    made = derive(m, node, *parents)
    made.is_loss = "loss" in name
    made.reduced = None
    if m.recording:
        made.graph = None if not parents else True
        made.models |= {model}
    return made
