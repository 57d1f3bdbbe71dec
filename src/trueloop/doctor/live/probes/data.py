"""The contents of batches: values that are not finite, raw inputs, columns that are the target, and
samples that are both trained on and validated on."""

from __future__ import annotations

import sys
import threading
import weakref
from collections import Counter
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils.data import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
)

from trueloop.doctor.live.frames import source_map, user_frames
from trueloop.doctor.live.objects import autograd_graph, inspection
from trueloop.doctor.live.probes.equal_rows import equal_rows
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.live.probes.target_table import TargetTable
from trueloop.doctor.model.events import BatchFetched, Loss, ModelForward
from trueloop.doctor.model.measurements import (
    FirstLayerInput,
    LoaderOverlap,
    NonFiniteBatch,
    TargetColumns,
)
from trueloop.doctor.model.things import Loader, Model

if TYPE_CHECKING:
    from trueloop.doctor.live.context import Context
    from trueloop.doctor.model.events import Event

_LAYERS = (nn.Linear, nn.modules.conv._ConvNd, nn.Bilinear, nn.RNNBase)
_NAMED = 8
"""Samples that are named."""
_LOOKS = 6
"""Batches of one model whose first layer is looked at."""
_COLUMNS = 512


class NonFinite(Probe):
    """NaN and infinity in a batch that reach a layer or a loss."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._bad: dict[int, NonFiniteBatch] = {}
        self._by_hand: dict[int, NonFiniteBatch] = {}
        """Those that no loader gave, until the model's own inputs are looked at."""
        self._computed = False
        """A model has returned such values for inputs without them: what models get later may come
        from there."""

    def fetched(self, batch: object, event: Event) -> None:
        assert isinstance(event, BatchFetched)
        thread = threading.get_ident()
        self._bad.pop(thread, None)
        for each in autograd_graph.tensors_in(batch):
            if each.is_floating_point() and each.numel() and not bool(each.sum().isfinite()):
                # Minus infinity by itself is a mask.
                found = _rows(each, each.isnan() | each.isposinf(), event.loader)
                if found is not None:
                    indices = self.watcher.track().indices
                    found.samples = [indices[row] for row in found.rows if row < len(indices)]
                    self._bad[thread] = found.at(event)
                    return

    def entered(self, module: nn.Module, given: Any, outer: list[Any]) -> None:
        if not isinstance(module, _LAYERS):
            return
        source = next(autograd_graph.tensors_in(given), None)
        if source is None or not source.is_floating_point():
            return
        bad = self._bad.get(threading.get_ident())
        if bad is None and not source.requires_grad and outer[0].training:
            self._look_at_data(module, source)
        elif bad is not None and not _finite(source):
            self._say(bad, type(module).__name__)

    def _look_at_data(self, module: nn.Module, source: torch.Tensor) -> None:
        """Rows that the program takes from a table itself, or scales on the way."""
        if self._computed or not torch.is_grad_enabled() or not source.numel() or _finite(source):
            return
        found = _rows(source, ~source.isfinite(), None)
        if found is not None and found.count < len(source) and _trains(module):
            found.place = user_frames.standing_at(sys._getframe(1))
            found.reaches, found.reached_at = type(module).__name__, found.place
            self._by_hand.setdefault(threading.get_ident(), found)

    def after_forward(self, module: nn.Module, given: Any, output: object, event: Event) -> None:
        thread = threading.get_ident()
        found = self._by_hand.pop(thread, None)
        if found is not None and _has_bad(given):
            self.watcher.measure(found)
        elif thread not in self._bad:
            self._computed = self._computed or _has_bad(output)

    def lost(self, given: dict[str, Any], output: torch.Tensor, event: Event) -> None:
        assert isinstance(event, Loss)
        bad = self._bad.get(threading.get_ident())
        if bad is None or event.criterion.reduction == "none" or _finite(output):
            return
        if _has_bad(given):
            self._say(bad, event.criterion.kind)

    def _say(self, bad: NonFiniteBatch, what: str) -> None:
        self._bad.pop(threading.get_ident(), None)
        bad.reaches, bad.reached_at = what, user_frames.standing_at(sys._getframe(1))
        self.watcher.measure(bad)


def _has_bad(value: object) -> bool:
    tensors = autograd_graph.tensors_in(value)
    return any(each.is_floating_point() and not _finite(each) for each in tensors)


def _finite(tensor: torch.Tensor) -> bool:
    return bool(tensor.detach().isfinite().all())


def _rows(tensor: torch.Tensor, bad: torch.Tensor, loader: Loader | None) -> NonFiniteBatch | None:
    """The first rows that contain a value that `bad` marks."""
    rows = bad.reshape(bad.shape[0], -1).any(1) if bad.dim() else bad.reshape(1)
    found = rows.nonzero().reshape(-1)
    if not len(found):
        return None
    kind = "NaN" if bool(tensor.isnan().any()) else "infinity"
    named = found[:_NAMED].tolist()
    return NonFiniteBatch(loader=loader, rows=named, samples=[], count=len(found), kind=kind)


class RawInputs(Probe):
    """How large the inputs are that reach the first layer of a model."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._looks: Counter[int] = Counter()
        self._first: dict[int, tuple[float, float, str] | None] = {}
        self._followed: set[int] = set()
        """Threads in which the module after the first layer has been met."""

    def entered(self, module: nn.Module, given: Any, outer: list[Any]) -> None:
        thread = threading.get_ident()
        root = outer[0]
        if not root.training or not torch.is_grad_enabled():
            return
        if thread in self._first:
            if thread not in self._followed:
                self._followed.add(thread)
                if "Norm" in type(module).__name__:
                    self._first[thread] = None  # of the layer's output the scale does not matter
            return
        has_weights = next(module.parameters(recurse=False), None) is not None
        if not has_weights or self._looks[id(root)] >= _LOOKS:
            return
        self._looks[id(root)] += 1
        self._first[thread] = None
        self._followed.discard(thread)
        source = next(autograd_graph.tensors_in(given), None)
        if source is None or not isinstance(module, _LAYERS) or not source.is_floating_point():
            return
        if source.numel() and _trains(module) and not source.requires_grad:
            x = source.detach().float()
            size, largest = torch.stack([x.square().mean().sqrt(), x.abs().amax()]).tolist()
            self._first[thread] = (size, largest, type(module).__name__)

    def after_forward(self, module: nn.Module, given: Any, output: object, event: Event) -> None:
        assert isinstance(event, ModelForward)
        found = self._first.pop(threading.get_ident(), None)
        if found is None or not event.grad or not event.training:
            return
        size, largest, layer = found
        measured = FirstLayerInput(model=event.model, size=size, largest=largest, layer=layer)
        self.watcher.measure(measured.at(event))

    def unwatched(self) -> None:
        self._first.clear()


def _trains(module: nn.Module) -> bool:
    return any(each.requires_grad for each in module.parameters(recurse=False))


class Columns(Probe):
    """Is the target one of the columns of a table?"""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._tables: dict[Loader | Model, TargetTable] = {}
        self._now: dict[int, tuple[Any, Any, Loader | Model]] = {}
        """By thread: the inputs, the target where it is known, and what has them."""

    def fetched(self, batch: object, event: Event) -> None:
        assert isinstance(event, BatchFetched)
        self._now.pop(threading.get_ident(), None)
        parts = list(autograd_graph.tensors_in(batch))
        if len(parts) != 2 or event.loader is None:
            return
        inputs, target = parts
        if _is_table(inputs) and _is_column(target) and len(inputs) == len(target):
            refs = weakref.ref(inputs), weakref.ref(target)
            self._now[threading.get_ident()] = (*refs, event.loader)

    def after_forward(self, module: nn.Module, given: Any, output: object, event: Event) -> None:
        """No loader gave the batch as a pair: the program takes rows from a table itself."""
        assert isinstance(event, ModelForward)
        thread = threading.get_ident()
        now = self._now.get(thread)
        if now is not None and isinstance(now[2], Loader):
            return
        self._now.pop(thread, None)
        tensors = list(autograd_graph.tensors_in(given))
        if not (event.grad and event.training and len(tensors) == 1):
            return
        if _is_table(tensors[0]) and not tensors[0].requires_grad:
            self._now[thread] = (weakref.ref(tensors[0]), lambda: None, event.model)

    def lost(self, given: dict[str, Any], output: torch.Tensor, event: Event) -> None:
        assert isinstance(event, Loss)
        now = self._now.pop(threading.get_ident(), None)
        used = given.get("target")
        if now is None or not event.grad or not inspection.is_tensor(used):
            return
        inputs, target, whose = now[0](), now[1](), now[2]
        by_loader = isinstance(whose, Loader)
        if inputs is None or (by_loader and target is None):
            return
        if target is None:
            target = used
            if not _is_column(target) or _same_memory(inputs, target):
                return  # or a part of the inputs is the target, in so many words
        if not _is_column(target) or not used.numel() == target.numel() == len(inputs):
            return
        table = self._tables.setdefault(whose, TargetTable(distinct=not by_loader))
        table.see(inputs, target.reshape(-1))
        if not table.closed:
            measured = TargetColumns(
                loader=whose if isinstance(whose, Loader) else None,
                model=whose if isinstance(whose, Model) else None,
                rows=table.rows, columns=table.columns(), width=inputs.shape[1],
            )  # fmt: skip
            self.watcher.measure(measured.at(event))


def _same_memory(one: torch.Tensor, two: torch.Tensor) -> bool:
    return one.untyped_storage().data_ptr() == two.untyped_storage().data_ptr()


def _is_table(tensor: torch.Tensor) -> bool:
    is_matrix = tensor.layout is torch.strided and tensor.dim() == 2
    return is_matrix and 2 <= tensor.shape[1] <= _COLUMNS and tensor.is_floating_point()


def _is_column(tensor: torch.Tensor) -> bool:
    if tensor.layout is not torch.strided:
        return False
    return tensor.dim() == 1 or (tensor.dim() == 2 and tensor.shape[1] == 1)


_LOADERS = 64
"""The latest ones are compared: folds may make two in every epoch."""


class Overlap(Probe):
    """Which samples the loaders have in common."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._loaders: dict[Loader, tuple[Any, Any, Any]] = {}
        """Loader -> the key of its data, the data set (weak), the samples (None: all)."""

    def fetched(self, batch: object, event: Event) -> None:
        assert isinstance(event, BatchFetched)
        loader = event.loader
        if loader is None or loader in self._loaders:
            return
        reached = _reach(self.watcher.track().iterator)
        if reached is None:
            return
        key, dataset, samples = reached
        for other, (their_key, their_set, theirs) in list(self._loaders.items()):
            if their_set() is None:
                del self._loaders[other]
                continue
            same = their_key == key
            common = len(samples & theirs) if same else 0
            equal = 0 if common else equal_rows(dataset, samples, their_set(), theirs)
            if common or equal:
                overlap = LoaderOverlap(
                    loader=loader, size=len(samples), other=other, other_size=len(theirs),
                    common=common or equal, by_content=not common,
                    written=(
                        source_map.names_of_call(loader.made),
                        source_map.names_of_call(other.made),
                    ),
                )  # fmt: skip
                self.watcher.measure(overlap.at(event))
        if len(self._loaders) == _LOADERS:
            del self._loaders[next(iter(self._loaders))]
        self._loaders[loader] = (key, weakref.ref(dataset), samples)


def _reach(iterator: Any) -> tuple[Any, Any, frozenset[int]] | None:
    """The data set and the samples that a loader draws from, by its iterator; None where that is
    not known."""
    dataset, batches = (getattr(iterator, name, None) for name in ("_dataset", "_index_sampler"))
    if not isinstance(batches, BatchSampler) or type(batches).__module__ != (
        "torch.utils.data.sampler"
    ):
        return None
    sampler = batches.sampler
    if not hasattr(type(dataset), "__len__") or not hasattr(type(dataset), "__getitem__"):
        return None
    if inspection.is_a(sampler, SubsetRandomSampler):
        samples = [int(each) for each in sampler.indices]
    elif inspection.is_a(sampler, (SequentialSampler, RandomSampler)):
        samples = list(range(inspection.length(dataset) or 0))
    else:
        return None
    if len(samples) > 5_000_000:
        return None
    while isinstance(dataset, Subset) and type(dataset) is Subset:
        indices = dataset.indices
        samples = [int(indices[each]) for each in samples]
        dataset = dataset.dataset
    try:
        weakref.ref(dataset)
    except TypeError:
        return None
    if type(dataset) is TensorDataset and dataset.tensors:
        first = dataset.tensors[0]
        row = first[0].numel() if first.dim() and len(first) else 0
        if row and first.is_contiguous():
            begin = first.storage_offset()
            if begin % row == 0:
                key = ("storage", first.untyped_storage().data_ptr(), row, first.dtype)
                return key, dataset, frozenset(begin // row + each for each in samples)
    return ("object", id(dataset)), dataset, frozenset(samples)


PROBES = (NonFinite, RawInputs, Columns, Overlap)
