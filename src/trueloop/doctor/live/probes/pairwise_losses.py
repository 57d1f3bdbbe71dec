"""A loss that compares the samples of one batch with each other.

`z @ z.T` of a model's outputs, or `cdist` of them, has a row and a column for each sample. It is
looked for in the graph between a loss and the models that it comes from.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from trueloop.doctor.live.objects import autograd_graph, inspection
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model.events import BatchFetched, Loss
from trueloop.doctor.model.loss_measurements import PairwiseLoss

if TYPE_CHECKING:
    from trueloop.doctor.live.context import Context
    from trueloop.doctor.model.events import Event
    from trueloop.doctor.model.findings import Location

_LOOKS = 12
"""Losses that are looked through at one place."""
_NODES = 300
_VIEWS = 8
"""Rows that one sample may have: its views, or its parts."""
_FEWEST = 4
"""Targets that count 0, 1, 2, ... by chance are shorter."""
_TURNS = ("T", "Transpose", "Permute")


class Pairs(Probe):
    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._looks: Counter[Location] = Counter()
        self._samples: dict[int, int] = {}
        """Thread -> samples of its latest batch, if a loader gives their number."""
        self._counted: dict[int, set[int]] = {}
        """Thread -> rows of which a cross-entropy since the last backward has asked: which column
        is your own?"""

    def fetched(self, batch: object, event: Event) -> None:
        assert isinstance(event, BatchFetched)
        self._samples[threading.get_ident()] = len(self.watcher.track().indices)

    def lost(self, given: dict[str, Any], output: torch.Tensor, event: Event) -> None:
        assert isinstance(event, Loss)
        source, target = given.get("input"), given.get("target")
        if event.criterion.kind != "CrossEntropyLoss" or not event.grad:
            return
        if (
            not inspection.is_tensor(source)
            or not inspection.is_tensor(target)
            or source.dim() != 2
        ):
            return
        rows = source.shape[0]
        if rows != source.shape[1] or target.shape != (rows,) or rows < _FEWEST:
            return
        if self._looks[event.place] < _LOOKS and not target.is_floating_point():
            in_order = torch.arange(rows, device=target.device, dtype=target.dtype)
            if torch.equal(target.sort().values, in_order):
                self._counted.setdefault(threading.get_ident(), set()).add(rows)

    def before_backward(self, tensors: object, event: Event, frame: FrameType) -> None:
        thread = threading.get_ident()
        counted = self._counted.pop(thread, set())
        loss = next(autograd_graph.tensors_in(tensors), None)
        self._looks[event.place] += 1
        if loss is None or self._looks[event.place] > _LOOKS:
            return
        samples = self._samples.get(thread, 0)
        rows = _compared(loss, samples, counted)
        if rows:
            self.watcher.measure(PairwiseLoss(backward=event.serial, rows=rows).at(event))


def _compared(loss: torch.Tensor, samples: int, counted: set[int]) -> int:
    """The rows of a matrix of all pairs that goes into a loss; 0 if there is none."""
    for node in _between(loss.grad_fn):
        rows = _square(node)
        if rows < 2 or not _is_product_of_rows(node):
            continue
        is_batch = samples > 1 and rows % samples == 0 and rows // samples <= _VIEWS
        if rows in counted or (is_batch and _from_models(node, rows, samples)):
            return rows
    return 0


def _between(node: Any) -> Iterator[Any]:
    """The nodes from a loss down to what models gave, and to the products in these that nothing
    but a scale was applied to."""
    waiting, seen = [(node, False)], dict[int, Any]()
    while waiting and len(seen) < _NODES:
        node, inside = waiting.pop()
        if node is None or id(node) in seen:
            continue
        seen[id(node)] = node
        yield node
        noted = node.metadata.get(autograd_graph.NOTE)
        inside = inside or (noted is not None and not noted.is_loss and bool(noted.shape))
        if inside and autograd_graph.name_of(node) not in ("Mul", "Div", *_TURNS):
            continue
        waiting += [(each, inside) for each, _ in node.next_functions]


def _shape(node: Any, position: int = 0) -> tuple[int, ...]:
    found = node._input_metadata
    return tuple(found[position].shape) if position < len(found) else ()


def _square(node: Any) -> int:
    """Rows of a product that has as many columns; 0 for anything else."""
    if autograd_graph.name_of(node) not in ("Mm", "Cdist", "CdistForward", "Bmm"):
        return 0
    shape = _shape(node)
    if len(shape) == 3 and shape[0] == 1:  # as `einsum` makes it
        shape = shape[1:]
    return int(shape[0]) if len(shape) == 2 and shape[0] == shape[1] else 0


def _is_product_of_rows(node: Any) -> bool:
    """Rows are multiplied with rows: `a @ b.T`, of tensors that are computed both."""
    parts = [each for each, _ in node.next_functions]
    if len(parts) != 2 or None in parts:
        return False
    name = autograd_graph.name_of(node)
    if name.startswith("Cdist"):
        return True
    if name == "Bmm":
        inner = _shape(parts[0], node.next_functions[0][1])
        return bool(inner) and inner[-1] != _square(node)
    return not _is_turned(parts[0]) and _is_turned(parts[1])


def _is_turned(node: Any) -> bool:
    """Rows and columns have changed places, on the way from what computes the values."""
    turned = False
    while node is not None and autograd_graph.name_of(node) in (*_TURNS, "Div", "Mul"):
        turned ^= autograd_graph.name_of(node) in _TURNS
        node = node.next_functions[0][0]
    return turned


def _from_models(product: Any, rows: int, samples: int) -> bool:
    """Both sides are made of what models that learn gave for the samples, row by row."""
    return all(_reaches(each, rows, samples) for each, _ in product.next_functions)


def _reaches(node: Any, rows: int, samples: int) -> bool:
    waiting, seen = [node], dict[int, Any]()
    while waiting and len(seen) < _NODES:
        node = waiting.pop()
        if node is None or id(node) in seen or not {rows, samples} & {*_shape(node)}:
            continue
        seen[id(node)] = node
        noted = node.metadata.get(autograd_graph.NOTE)
        if noted is not None and noted.models and noted.shape:
            if noted.shape[0] in (rows, samples):
                return True
            continue
        waiting += [each for each, _ in node.next_functions]
    return False
