"""Is the loss finite, update by update? If it is not: where that began.

It is asked even while nobody looks: on the CPU at each backward, which takes half a microsecond; on
an accelerator now and then, without waiting for it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from threading import get_ident
from types import FrameType
from typing import TYPE_CHECKING, Any
from weakref import ref

import torch
from torch import dot, nn

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.nonfinite import forensics
from trueloop.doctor.live.nonfinite.call_reconstruction import CallReconstruction
from trueloop.doctor.live.nonfinite.operation_trace import kind_of_bad
from trueloop.doctor.live.nonfinite.recent_calls import RecentCalls
from trueloop.doctor.live.objects import autograd_graph, inspection
from trueloop.doctor.live.objects.registry import WeakMap
from trueloop.doctor.live.probes import parameter_stats
from trueloop.doctor.live.replay import bundle
from trueloop.doctor.model.findings import Location

if TYPE_CHECKING:
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    from trueloop.doctor.live.context import Context
    from trueloop.doctor.live.hub import Hub
    from trueloop.doctor.live.nonfinite.forensics import Found

ParameterRef = Callable[[], torch.Tensor | None]
CODE = "TH101"
_EVERY = 16
"""Updates between two looks at the loss on an accelerator."""
_TRIES = 4
"""Batches that are searched and then skipped by the program, before the search ends."""


@dataclass
class PendingNonFinite:
    """Something that is not finite, before it is known what becomes of it."""

    found: Found
    place: Location
    stack: tuple[Location, ...]
    turns: Any
    update: int
    modules: list[Any] = field(default_factory=list)
    """Weak references to the modules that are trained on it."""
    times: int = 1


class NonFiniteMonitor:
    """The loss and the gradients of one watched process."""

    def __init__(self, hub: Hub, watcher: Context, codes: Set[str]) -> None:
        self.hub, self.watcher = hub, watcher
        self.calls = hub.calls = RecentCalls(hub)
        self._codes = codes
        hub.checks_finite = CODE in codes
        self.bundles = os.getcwd()
        """Folder that bundles are written to; empty: none is."""
        self.recent: deque[float] = deque(maxlen=8)
        """The latest losses."""
        self.number: float | None = None
        """The loss of the current backward, where it was read."""
        self.small: tuple[Any, float] | None = None
        """A small parameter (weak), and the square of its gradient's norm after the latest
        backward; cleared by whoever reads it."""
        self.norm: float | None = None
        """Of the latest gradients that were looked at."""
        self.fetch: tuple[Any, int] | None = None
        """The latest batch: its iterator (weak), and its number there."""
        self.pending: PendingNonFinite | None = None
        self.recall = CallReconstruction(self.calls)
        self._begun = False
        self._infinite_is_fine = False
        """The program has gone on from an infinite loss with gradients that were finite."""
        self._tries = 0
        self._scaled: Any = None
        self._is_scaled = False
        self._sentinels = WeakMap[ParameterRef]()
        self._watched: Any = None
        """The module (weak) whose backward was looked at last."""
        self.sentinel: ParameterRef = _nothing
        """A weak reference to a parameter of it, whose gradient is read between two looks."""
        self._count = 0
        self._asked: Any = None

    # ------------------------------------------------------------------ called by the patches

    def scaled(self, outputs: object, result: Any) -> None:
        """A scaler has multiplied a loss: it is the loss itself that counts."""
        if not self.hub.checks_finite:
            return
        self.hub.unsampled.leave()
        if inspection.is_tensor(outputs) and inspection.is_tensor(result):
            self._scaled = (ref(result), outputs.detach())

    def before(self, tensors: object, frame: FrameType) -> None:
        """A backward begins."""
        if not self.hub.checks_finite:
            return
        self.number = None
        if (
            type(tensors) is torch.Tensor
            and tensors.is_cpu
            and tensors.numel() == 1
            and self._scaled is None
            and self.pending is None
            and get_ident() == self.calls.thread
        ):  # nearly always
            self._begun, self._is_scaled = True, False
            self.number = number = tensors.item()
            if number - number == 0:
                self.recent.append(number)
                return
        if get_ident() != self.calls.thread:
            if self._begun:
                return
            self.calls.thread = get_ident()
        self._begun = True
        loss = autograd_graph.first_in(tensors)
        held, self._scaled = self._scaled, None
        self._is_scaled = held is not None and held[0]() is loss
        value = held[1] if self._is_scaled else loss
        if type(value) is not torch.Tensor or value.numel() != 1:
            return
        if value.is_cpu or (self.hub.sampling and not parameter_stats.capturing()):
            self.number = number = value.item()
            if number - number == 0:
                self.recent.append(number)
                if self.pending is not None:
                    self._went_on()
            elif number != number or not self._infinite_is_fine:
                self._loss(value, loss, frame)
        elif not parameter_stats.capturing():
            self._ask(value, loss, frame)

    def after(self, tensors: object, frame: FrameType, keeps: bool) -> None:
        """A backward has ended; `keeps`: its graph may be gone through again."""
        calls = self.calls
        if get_ident() != calls.thread:
            return
        if self.pending is None and not self._is_scaled and (calls.raws or not calls.holds):
            self._look_at_gradients(tensors, frame)
        if calls.raws and self.hub.sampling:
            self.recall.learn(calls.raws, frame, keeps=keeps)
        if not keeps:
            calls.release()

    def fetched(self, iterator: _BaseDataLoaderIter) -> None:
        """A loader gives the next batch: what was computed from the one before is done with."""
        self.calls.release()
        self.fetch = (ref(iterator), getattr(iterator, "_rcvd_idx", 1) - 1)

    def stepped(self) -> None:
        """An optimizer has stepped."""
        if self.pending is not None:
            self.hub.guarded(self._stepped, self.pending)

    def _stepped(self, pending: PendingNonFinite) -> None:
        if get_ident() != self.calls.thread:
            return
        if pending.found.origin.explosion or self._bad_of(pending, gradients=False):
            self._say(pending, "stepped")
        else:
            self._drop(pending)

    def pause(self) -> None:
        """No sampling from here on: calls are kept unless they can be put together again."""
        recall, calls = self.recall, self.calls
        model = recall.model if recall.is_known else None
        calls.holds = model is None or not self.hub.follows_training
        if model is not None and not calls.holds:
            self._watched, self.sentinel = ref(model), self._sentinel_of(model)

    def keep_calls(self) -> None:
        """The knowledge about the calls is out of date."""
        if not self.calls.holds:
            self.calls.holds = True
            self.hub.unsampled.leave()
            self.hub.refresh_call_patch()

    def _put_together(self, frame: FrameType) -> None:
        """The calls of a backward with a fault, if they were not kept."""
        if not self.calls.holds and not self.hub.sampling:
            self.calls.raws[:] = self.recall.again(frame)

    def end(self) -> None:
        """The run is over."""
        if self.pending is not None:
            if self.hub.cut:
                self._say(self.pending, "ended")
            else:
                self._drop(self.pending)

    # ------------------------------------------------------------------ the loss

    def _loss(self, value: torch.Tensor, loss: torch.Tensor | None, frame: FrameType) -> None:
        if self.pending is not None:
            self.pending.times += 1
            if self._bad_of(self.pending, gradients=False) or self.pending.times > 2:
                self._say(self.pending, "again")
            return
        here = user_frames.sites(frame)
        if not here:
            return
        self._put_together(frame)
        place = user_frames.user_place(here)[0]
        found = forensics.of_loss(self, self.calls.held, value, self.indices(), place)
        self._wait(found, here)

    def _ask(self, value: torch.Tensor, loss: torch.Tensor | None, frame: FrameType) -> None:
        """Of a loss on an accelerator: what was asked the last time, and has arrived since."""
        self._count += 1
        if self._count % _EVERY:
            return
        asked, self._asked = self._asked, None
        if asked is not None:
            flag, event = asked
            if event.query() and not bool(flag):
                self._loss(value, loss, frame)
                return
        if value.device.type == "cuda":
            flag = torch.empty((), dtype=torch.bool, pin_memory=True)
            flag.copy_(value.detach().isfinite().reshape(()), non_blocking=True)
            event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            event.record()
            self._asked = (flag, event)

    # ------------------------------------------------------------------ the gradients

    def _look_at_gradients(self, tensors: object, frame: FrameType) -> None:
        if not self.hub.sampling:
            if self.calls.holds:
                module = self.calls.raws[0][0]
                if self._watched is None or self._watched() is not module:
                    self._watched, self.sentinel = ref(module), self._sentinel_of(module)
            parameter = self.sentinel()
            gradient = None if parameter is None else parameter.grad
            if type(gradient) is not torch.Tensor or gradient.requires_grad:
                return
            size = dot(gradient, gradient).item()
            self.small = (self.sentinel, size)
            if size - size == 0:
                return
            self._put_together(frame)
        modules = [each.function for each in self.calls.held if _learns(each.function)]
        if not modules:
            return
        if self.hub.sampling:
            if parameter_stats.capturing():
                return
            given = _gradients(modules)
            self.norm = _norm([each for _, each in given])
            if self.norm is None or self.norm - self.norm == 0:
                return
        else:
            given = _gradients(modules)
        names = forensics.which_are_bad(given)
        if not names:
            return
        here = user_frames.sites(frame)
        if not here:
            return
        loss = next(autograd_graph.tensors_in(tensors), None)
        found = forensics.of_gradient(self, self.calls.held, names, loss, self.indices())
        self._wait(found, here)

    def _sentinel_of(self, module: nn.Module) -> ParameterRef:
        """A weak reference to a small parameter near the beginning of a model: whatever is not
        finite in a backward arrives at its gradient. One to nothing where none can be read
        cheaply."""
        known = self._sentinels.get(module)
        if known is None:
            parameters = inspection.weights(module) if isinstance(module, nn.Module) else ()
            plain = (p for p in parameters if type(p) is nn.Parameter)
            first = next((p for p in plain if p.requires_grad and p.dim() == 1), None)
            known = _nothing
            if first is not None and first.device.type == "cpu" and first.is_floating_point():
                known = ref(first)
            self._sentinels.put(module, known)
        return known

    # ------------------------------------------------------------------ what becomes of it

    def _wait(self, found: Found, here: Any) -> None:
        place, stack = user_frames.user_place(here)
        modules = [ref(each.function) for each in self.calls.held if _learns(each.function)]
        turns = self.watcher.track().turns.now()
        update = self.hub.updates + 1
        self.pending = PendingNonFinite(found, place, stack, turns, update, modules)

    def _bad_of(self, pending: PendingNonFinite, *, gradients: bool) -> bool:
        """Parameters, or their gradients, are not finite now."""
        alive = [
            each for each in (reference() for reference in pending.modules) if each is not None
        ]
        if not alive:
            return not gradients
        tensors = (
            [each for _, each in _gradients(alive)]
            if gradients
            else [p for each in alive for p in inspection.weights(each) if inspection.is_tensor(p)]
        )
        return any(kind_of_bad(parameter_stats.local(each)) for each in tensors)

    def _went_on(self) -> None:
        """The next loss is finite: unless bad gradients wait to be applied, the batch was
        skipped."""
        assert self.pending is not None
        if not self._bad_of(self.pending, gradients=True):
            self._drop(self.pending)

    def _drop(self, pending: PendingNonFinite) -> None:
        """The program has left the batch out, or nothing came of it."""
        self.pending = None
        self._tries += 1
        if pending.found.origin.what == "loss":
            if pending.found.origin.kind == "NaN":
                self._emit_outcome(pending, "left out", None)
            else:
                self._infinite_is_fine = True
                if pending.found.origin.cause == "operation":
                    self._emit_outcome(pending, "harmless", None)
        if self._tries >= _TRIES:
            self._close()

    def _say(self, pending: PendingNonFinite, outcome: str) -> None:
        self.pending = None
        self._close()
        folder = self.bundles
        written = None
        if folder:
            with suppress(OSError):
                written = bundle.write(folder, pending.found, pending.place, pending.update)
        self._emit_outcome(pending, outcome, written)

    def _emit_outcome(self, pending: PendingNonFinite, outcome: str, written: str | None) -> None:
        origin = pending.found.origin
        origin.update, origin.outcome = pending.update, outcome
        origin.bundle = written
        origin.data_rule = "TL708" in self._codes
        origin.place, origin.stack, origin.turns = pending.place, pending.stack, pending.turns
        self.watcher.measure(origin)

    def _close(self) -> None:
        self.hub.checks_finite = False
        self.calls.release()
        self.calls.inside = True

    def indices(self) -> Sequence[Any]:
        """The samples of the present batch in the data set, where they are known."""
        if self.fetch is None:
            return ()
        iterator = self.fetch[0]()
        asked = None if iterator is None else self.watcher.things.asked.get(iterator)
        found: Sequence[Any] = (asked or {}).get(self.fetch[1], ())
        return found


def _nothing() -> None:
    return None


def _learns(function: Any) -> bool:
    return isinstance(function, nn.Module) and next(inspection.weights(function), None) is not None


def _gradients(modules: list[Any]) -> list[tuple[str, Any]]:
    return [
        (name, each.grad)
        for module in modules
        for name, each in module.named_parameters()
        if each.grad is not None and inspection.is_tensor(each.grad)
    ]


def _norm(gradients: list[Any]) -> float | None:
    plain = [parameter_stats.local(each) for each in gradients]
    plain = [each for each in plain if each.is_floating_point() and each.numel()]
    if not plain:
        return None
    sizes = torch._foreach_norm(plain)
    device, exact = sizes[0].device, torch.float64
    exact = torch.float32 if device.type == "mps" else exact
    return float(torch.linalg.vector_norm(torch.stack([s.to(device, exact) for s in sizes])))
