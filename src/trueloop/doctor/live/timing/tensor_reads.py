"""Calls of a tensor's methods that cost time in every update, seen while the clock is on.

They are replaced only for these few turns: in between, torch's own methods are in place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from threading import get_ident
from time import perf_counter
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch.compiler import is_compiling

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.hub import dispatch_modes, no_torch_function
from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.patches.patching import Patches
from trueloop.doctor.live.timing.step_timing import OWN, Calls, Site
from trueloop.doctor.live.tracing import function_modes

if TYPE_CHECKING:
    from types import CodeType

    from trueloop.doctor.live.context import Context
    from trueloop.doctor.live.hub import Hub, Method, P, R

_WAITS = ("item", "__float__", "tolist")
_DEVICE_WAITS = (*_WAITS, "__int__", "__bool__", "cpu", "__repr__", "__format__")
_FUNCTIONS = ((torch, "norm"), (torch.linalg, "norm"), (torch.linalg, "vector_norm"))
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_MOST = 64
"""Lines that are followed in a unit."""


class Norms:
    """Norms of gradients, one by one, in one function."""

    def __init__(self, site: Site, begin: float) -> None:
        self.site = site
        self.begin = self.end = begin
        self.count = 0
        self.waits = 0


class RunningTimer(Protocol):
    """The questions to the step timer."""

    hub: Hub
    watcher: Context
    on: bool
    thread: int
    backwards: int

    def enter(self, part: str) -> bool: ...
    def leave(self, part: str) -> None: ...
    def so_far(self, part: str = "") -> float: ...
    def run(
        self, part: str, original: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> R: ...


class TensorReads:
    """Of one clock."""

    def __init__(self, clock: RunningTimer) -> None:
        self.clock = clock
        self._patches = Patches()
        self._functions = Patches()
        self._compiles = False
        self._on_device = False
        self._calls: dict[tuple[str, Site], Calls] = {}
        self._norms: dict[CodeType, Norms] = {}
        self._gradients: tuple[int, set[int]] = (-1, set())
        self._inside = False

    def begin(self) -> None:
        self.end()
        self._patches.replace(torch.Tensor, "norm", self._norm)
        for name in _WAITS:
            self._patches.replace(torch.Tensor, name, partial(self._wait, name))
        dynamo = sys.modules.get("torch._dynamo.convert_frame")
        if not self._compiles and not getattr(dynamo, "FRAME_COUNTER", 0):
            for owner, name in _FUNCTIONS:
                self._functions.replace(owner, name, self._norm)

    def on_device(self, device: str) -> None:
        """The trained model is on this kind of device."""
        if device == "cpu" or self._on_device:
            return
        self._on_device = True
        for name in set(_DEVICE_WAITS) - set(_WAITS):
            self._patches.replace(torch.Tensor, name, partial(self._wait, name))
        for name in ("to", "cuda"):
            self._patches.replace(torch.Tensor, name, partial(self._move, name))

    def end(self) -> None:
        self._patches.undo()
        self._functions.undo()
        self._on_device = False
        self.fresh()

    def compiles(self) -> None:
        """The program uses `torch.compile`: compiled code is compiled again if a function that it
        calls is replaced. Methods of tensors are not such functions."""
        self._compiles = True
        self._functions.undo()

    def fresh(self) -> None:
        """A unit begins."""
        self._calls, self._norms = {}, {}

    def calls(self) -> dict[tuple[str, Site], Calls]:
        """Those of the unit that ends."""
        for norms in self._norms.values():
            self._calls["norm", norms.site] = Calls(
                "norm", 1, min(norms.count, norms.waits), norms.end - norms.begin
            )
        return self._calls

    # ------------------------------------------------------------------ what is put in place

    def _norm(self, original: Callable[P, R]) -> Callable[P, R]:
        def norm(*args: P.args, **kwargs: P.kwargs) -> R:
            if is_compiling() or self._inside or not self.clock.on:
                return original(*args, **kwargs)
            given = args[0] if args else kwargs.get("input", kwargs.get("x"))
            if type(given) not in _PLAIN or function_modes() or dispatch_modes():
                # Others are handed the function itself, and may know it by its identity.
                self._leave_alone()
                return original(*args, **kwargs)
            if not self._counts(given, sys._getframe(1)):
                return original(*args, **kwargs)
            return self._outermost(original, *args, **kwargs)

        return norm

    def _is_on_gpu(self, tensor: torch.Tensor) -> bool:
        try:
            with no_torch_function():
                return inspection.is_tensor(tensor) and tensor.is_cuda
        except Exception as error:  # whatever it is, the program continues
            self.clock.hub.failed(error)
            return False

    def _leave_alone(self) -> None:
        """Put torch's own functions back, until the next time."""
        try:
            self.end()
        except Exception as error:  # whatever it is, the program continues
            self.clock.hub.failed(error)

    def _counts(self, given: Any, frame: FrameType) -> bool:
        """It is the norm of a gradient, taken in a line of the program's."""
        if not self.clock.enter(OWN):
            return False
        site = None
        try:
            site = _site(frame) if self._is_gradient(given) else None
        except Exception as error:  # whatever it is, the program continues
            self.clock.hub.failed(error)
        self.clock.leave(OWN)
        if site is None:
            return False
        try:
            self._norms.setdefault(site[0], Norms(site, self.clock.so_far())).count += 1
        except Exception as error:
            self.clock.hub.failed(error)
        return True

    def _is_gradient(self, given: Any) -> bool:
        if type(given) is not torch.Tensor:
            return False
        known, pointers = self._gradients
        if known != self.clock.backwards:
            pointers = set()
            for reference in self.clock.watcher.things.optimizers:
                optimizer = reference()
                groups = [] if optimizer is None else optimizer.param_groups
                gradients = [p.grad for group in groups for p in group["params"]]
                pointers.update(g.data_ptr() for g in gradients if type(g) is torch.Tensor)
            self._gradients = (self.clock.backwards, pointers)
        return given.data_ptr() in pointers

    def _wait(self, name: str, original: Method[torch.Tensor, P, R]) -> Method[torch.Tensor, P, R]:
        def wait(self_: torch.Tensor, /, *args: P.args, **kwargs: P.kwargs) -> R:
            if is_compiling() or self._inside:
                return original(self_, *args, **kwargs)
            if not self.clock.on or get_ident() != self.clock.thread:
                return original(self_, *args, **kwargs)
            frame = sys._getframe(1)
            norms = self._norms.get(frame.f_code)
            is_norm = norms is not None and norms.waits < norms.count
            if not is_norm and not (self._on_device and self._is_on_gpu(self_)):
                return original(self_, *args, **kwargs)
            begin = perf_counter()
            result = self._outermost(original, self_, *args, **kwargs)
            try:
                if norms is not None and is_norm:
                    norms.waits += 1
                    norms.end = self.clock.so_far()
                else:
                    self._note(Calls(name, 1), _site(frame), perf_counter() - begin)
            except Exception as error:  # whatever it is, the program continues
                self.clock.hub.failed(error)
            return result

        return wait

    def _move(self, name: str, original: Method[torch.Tensor, P, R]) -> Method[torch.Tensor, P, R]:
        def move(self_: torch.Tensor, /, *args: P.args, **kwargs: P.kwargs) -> R:
            clock = self.clock
            if is_compiling() or not clock.on:
                return original(self_, *args, **kwargs)
            if self._is_on_gpu(self_) or not clock.enter("transfer"):
                return original(self_, *args, **kwargs)
            begin = perf_counter()
            result = clock.run("transfer", original, self_, *args, **kwargs)
            seconds = perf_counter() - begin
            try:
                self._moved(name, (self_, result), (args, kwargs), sys._getframe(1), seconds)
            except Exception as error:  # whatever it is, the program continues
                clock.hub.failed(error)
            return result

        return move

    def _moved(self, name: str, pair: Any, given: Any, frame: FrameType, seconds: float) -> None:
        """A tensor was moved: `pair` is what it was and what it is."""
        before, after = pair
        args, kwargs = given
        if self._is_on_gpu(after) and not self.clock.hub.sampling:
            flags = [each for each in args if type(each) is bool]
            soon = kwargs.get("non_blocking", flags[0] if flags else False)
            calls = Calls(
                f"move by {name}", 1, non_blocking=soon is True, pinned=before.is_pinned()
            )
            self._note(calls, _site(frame), seconds)

    @user_frames.passed_over
    def _outermost(self, original: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call something: what it calls in turn is a piece of it."""
        self._inside = True
        try:
            return original(*args, **kwargs)
        finally:
            self._inside = False

    def _note(self, new: Calls, site: Site | None, seconds: float) -> None:
        name = new.name
        if site is None or (len(self._calls) >= _MOST and (name, site) not in self._calls):
            return
        calls = self._calls.setdefault((name, site), new)
        calls.count += 1
        calls.seconds += seconds


def _site(frame: FrameType | None) -> Site | None:
    """Where the program's own code is; None where a library's is."""
    while frame is not None and user_frames.kind_of(frame.f_code.co_filename) == "inside":
        frame = frame.f_back
    if frame is None or user_frames.kind_of(frame.f_code.co_filename) != "user":
        return None
    return frame.f_code, frame.f_lasti, frame.f_lineno or 0
