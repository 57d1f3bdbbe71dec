"""A tensor's autograd graph: which models and losses it went through, and how its values were made.

Nothing is recorded while the program computes: the graph is read at the moment when an event needs
it. Nodes that an earlier event spoke of carry a note (`Node.metadata`), so that a walk ends there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch.distributions import Distribution

from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.objects.registry import ObjectRegistry
from trueloop.doctor.model.things import NOWHERE, Activation, Criterion, Model, Tensor

NOTE = "trueloop"
MADE = "trueloop place"
"""On the node of an activation: where the program applies it."""
_NODES = 20_000
_SHAPES = frozenset(
    "View UnsafeView ReshapeAlias Squeeze Unsqueeze Permute Transpose T ToCopy Clone Alias Slice"
    " Select Narrow Expand Contiguous Split SplitWithSizes Unbind Index IndexSelect"
    " AsStrided".split()
)
_SAME_DIMENSIONS = frozenset("ToCopy Clone Alias Contiguous Slice Narrow IndexSelect".split())
_LINEAR = frozenset(
    "Addmm Mm Baddbmm Bmm Convolution MkldnnLinear MkldnnConvolution Linear".split()
)
_PRODUCTS = frozenset("Mm Bmm Mv SparseAddmm".split())
_ACTIVATIONS = {
    "Softmax": "softmax",
    "LogSoftmax": "log_softmax",
    "Sigmoid": "sigmoid",
    "LogSigmoid": "logsigmoid",
    "Log": "log",
}


class GraphNode(Protocol):
    """A node, with the attributes that are read; torch declares `metadata` as a method."""

    @property
    def metadata(self) -> dict[str, Any]: ...
    @property
    def _input_metadata(self) -> Sequence[Any]: ...
    @property
    def next_functions(self) -> tuple[tuple[GraphNode | None, int], ...]: ...
    def name(self) -> str: ...


def node_of(tensor: torch.Tensor) -> GraphNode | None:
    """The node that made a tensor; None of a leaf."""
    return tensor.grad_fn  # type: ignore[return-value]


@dataclass
class GraphHistory:
    """The end of a graph."""

    models: set[Model] = field(default_factory=set)
    inputs: set[Tensor] = field(default_factory=set)
    forwards: set[int] = field(default_factory=set)
    criteria: set[Criterion] = field(default_factory=set)
    reduced: str | None = None
    divided: bool = False
    averaged: int | None = None
    """The number of losses that were added, and divided by that number."""
    parameters: list[torch.Tensor] = field(default_factory=list)
    """Leaves that belong to modules."""
    whole: bool = True
    """The walk came to its end."""


def name_of(node: GraphNode) -> str:
    """`Softmax` of `SoftmaxBackward0`."""
    return str(node.name()).rpartition("::")[2].partition("Backward")[0]


def version(tensor: torch.Tensor) -> int:
    """Counts changes in place; inference tensors do not."""
    return -1 if tensor.is_inference() else int(tensor._version)


def note(tensor: torch.Tensor, thing: Tensor) -> None:
    """Write on a tensor's node what is known of it."""
    node = node_of(tensor)
    if node is not None:
        node.metadata[NOTE] = thing


def history(tensor: torch.Tensor, things: ObjectRegistry, *, through: bool = False) -> GraphHistory:
    """Walk the graph of a tensor from its end; `through` notes too, down to all leaves."""
    found = GraphHistory()
    end = node_of(tensor)
    if end is None:
        if tensor.requires_grad:
            _leaf(tensor, things, found)
        return found
    # A node's wrapper is kept while the walk lasts: by then its identity means something.
    seen: dict[int, GraphNode] = {}
    waiting = [(end, False)]
    while waiting:
        node, below_mark = waiting.pop()
        if id(node) in seen:
            continue
        if len(seen) >= _NODES:
            found.whole = False
            break
        seen[id(node)] = node
        noted = node.metadata.get(NOTE)
        if noted is not None:
            if not below_mark:
                _take(noted, found)
            if not through:
                continue
            below_mark = True
        elif not below_mark and name_of(node) in ("Div", "Mul"):
            averaged = _averages(node)
            found.divided = found.divided or not averaged
            found.averaged = found.averaged or averaged
        variable = getattr(node, "variable", None)
        if variable is not None:
            _leaf(variable, things, found)
        waiting += [(each, below_mark) for each, _ in node.next_functions if each is not None]
    return found


def _take(noted: Tensor, found: GraphHistory) -> None:
    found.models |= noted.models
    found.inputs |= noted.inputs
    found.forwards |= noted.forwards
    found.criteria |= noted.criteria
    found.reduced = found.reduced or noted.reduced
    found.divided = found.divided or bool(noted.divided)
    if noted.divided is False and type(noted.divided_by) is int:
        found.averaged = found.averaged or noted.divided_by


def _averages(node: GraphNode) -> int | None:
    """How many losses a division by their number takes the average of: `(one + two) / 2`."""
    total, other = (*node.next_functions, (None, 0), (None, 0))[:2]
    if total[0] is None or other[0] is not None:
        return None
    count = _losses_added(total[0], 4)
    hook = getattr(getattr(node, "_raw_saved_other", None), "unpack_hook", None)
    if count < 2 or hook is not None:
        return None  # not even looked at: a checkpoint gives what it has saved once
    try:
        number = getattr(node, "_saved_other", None)
    except RuntimeError:  # a backward has freed it
        return None
    if not isinstance(number, torch.Tensor) or number.dim() or number.device.type != "cpu":
        return None
    written = float(number) if name_of(node) == "Div" else 1 / (float(number) or 1.0)
    return count if written == count else None


def _losses_added(node: GraphNode, depth: int) -> int:
    """How many undivided means a sum consists of; 0 if there is anything else in it."""
    noted = node.metadata.get(NOTE)
    if noted is not None:
        return int(noted.is_loss and noted.reduced == "mean" and noted.divided is False)
    if name_of(node) != "Add" or not depth:
        return 0
    parts = [
        0 if each is None else _losses_added(each, depth - 1) for each, _ in node.next_functions
    ]
    return sum(parts) if all(parts) else 0


def _leaf(variable: torch.Tensor, things: ObjectRegistry, found: GraphHistory) -> None:
    owners = [each() for each in things.owners.get(variable) or ()]
    owner = next((each for each in owners if each is not None), None)
    if owner is None:
        found.inputs.add(things.leaf(variable))
    else:
        found.parameters.append(variable)
        found.models.add(things.model(owner))


def tensor_of(tensor: torch.Tensor, things: ObjectRegistry) -> Tensor:
    """The thing for a tensor, with its history."""
    known = things.tensors.get(tensor)
    if known is not None and known.version == version(tensor):
        asked_later = tensor.requires_grad and tensor.grad_fn is None and not known.graph
        if asked_later and not known.inputs and known.role != "parameter":
            known.inputs = frozenset({known})  # a batch, noted before its gradient was asked for
        return known
    found = history(tensor, things)
    thing = Tensor(
        known=True,
        graph=tensor.grad_fn is not None,
        models=frozenset(found.models),
        inputs=frozenset(found.inputs),
        forwards=frozenset(found.forwards),
        criteria=frozenset(found.criteria),
        is_loss=bool(found.criteria),
        reduced=found.reduced,
        divided=found.divided,
        activation=activation(tensor),
        shape=tuple(tensor.shape),
        dtype=str(tensor.dtype).rpartition(".")[2],
        version=version(tensor),
        hidden=is_hidden(tensor),
    )
    if not found.divided:
        thing.divided_by = found.averaged
    things.tensors.put(tensor, thing)
    return thing


def activation(tensor: torch.Tensor) -> Activation | None:
    """The last operation on a tensor's values, if it bears on losses."""
    node = node_of(tensor)
    kept = True
    while node is not None:
        name = name_of(node)
        if _is_layer(node, name):
            return Activation("linear", None, NOWHERE)
        if _is_product(node, name):
            return Activation("product", None, NOWHERE)
        if name in _ACTIVATIONS:
            dim = dimension_of(node) if kept else None
            return Activation(_ACTIVATIONS[name], dim, node.metadata.get(MADE, NOWHERE))
        if name not in _SHAPES:
            return None
        kept = kept and (name in _SAME_DIMENSIONS or (name == "Index" and _picks_rows(node)))
        node = node.next_functions[0][0]
    return None


def _picks_rows(node: GraphNode) -> bool:
    """`output[mask]`, `output[rows]`: what is left has the same dimensions."""
    try:
        indices: Sequence[torch.Tensor | None] = getattr(node, "_saved_indices", ())
    except RuntimeError:  # a backward has freed them
        return False
    return len(indices) == 1 and indices[0] is not None and indices[0].dim() == 1


def is_hidden(tensor: torch.Tensor) -> bool:
    """How its values were made is not in the graph: there is none, or a compiled one."""
    return tensor.grad_fn is None or "CompiledFunction" in tensor.grad_fn.name()


def _is_layer(node: GraphNode, name: str) -> bool:
    """The product with a weight, its bias added or not."""
    if name == "Add":
        product, bias = (each for each, _ in (*node.next_functions, (None, 0), (None, 0))[:2])
        variable = getattr(bias, "variable", None)
        if variable is None or variable.dim() > 1:
            return False
        while product is not None and name_of(product) in _SHAPES:
            product = product.next_functions[0][0]
        return product is not None and _is_layer(product, name_of(product))
    if name in ("Mm", "Bmm", "Baddbmm"):
        return any(_is_weight(each) for each, _ in node.next_functions)
    return name in _LINEAR


def _is_product(node: GraphNode, name: str) -> bool:
    """The product of a layer's output, or of such a product, with something that has no graph; a
    bias may have been added."""
    factors = [each for each, _ in node.next_functions if each is not None]
    if name == "Add":
        rest = [each for each in factors if getattr(each, "variable", None) is None]
        return len(rest) == len(factors) - 1 == 1 and _is_product(rest[0], name_of(rest[0]))
    if name not in _PRODUCTS or len(factors) != 1:
        return False
    inner: GraphNode | None = factors[0]
    while inner is not None and name_of(inner) in _SHAPES:
        inner = inner.next_functions[0][0]
    return inner is not None and any(
        is_linear(inner, name_of(inner)) for is_linear in (_is_layer, _is_product)
    )


def _is_weight(node: GraphNode | None) -> bool:
    while node is not None and name_of(node) in ("T", "Transpose", "Expand", "View", "ToCopy"):
        node = node.next_functions[0][0]
    return getattr(node, "variable", None) is not None


def dimension_of(node: GraphNode) -> int | None:
    """The dimension that an operation runs over, if its node says it."""
    dim = getattr(node, "_saved_dim", None)
    if dim is None:
        return None
    # Saved as an unsigned number: -1 reads 2**64 - 1.
    return int(dim - 2**64 if dim >= 2**63 else dim)


def first_in(value: object) -> torch.Tensor | None:
    """The first of `tensors_in`."""
    return value if type(value) is torch.Tensor else next(tensors_in(value), None)


def tensors_in(value: object, depth: int = 3) -> Iterator[torch.Tensor]:
    """The tensors in what a module takes or gives, as far as they can be read: nested sequences,
    mappings, data classes, distributions of torch."""
    if inspection.is_tensor(value):
        yield value
    elif depth:
        parts = inspection.entries(value)
        if inspection.is_a(value, Distribution):  # a policy gives one
            parts = list(inspection.attributes(value).values())
        for each in parts:
            yield from tensors_in(each, depth - 1)
