"""Where the patches say what the program does, and the parts that asked for it hear it.

It imports nothing of ours: patches, monitors and probes know the hub, and not each other.
While `sampling` is False, a patch costs one test of a flag.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data.dataloader import _BaseDataLoaderIter

# A mode of the program's, or a class of tensors of its own, must not see our operations. Torch has
# no public way to turn off either.
no_torch_function: Any = torch._C.DisableTorchFunction
no_torch_dispatch: Any = torch._C._DisableTorchDispatch
dispatch_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack

P = ParamSpec("P")
R = TypeVar("R")
Owner = TypeVar("Owner")
Method = Callable[Concatenate[Owner, P], R]
"""A function of a class, called with an instance first."""
Args = tuple[Any, ...]
"""The arguments of a call by place; they are the program's, of whatever type."""
Kwargs = dict[str, Any]
CallArguments = tuple[Args, Kwargs]


class Timer(Protocol):
    """The patches' view of the step timer; they ask nothing while it is not `on`."""

    on: bool
    own: str

    def enter(self, part: str) -> bool: ...
    def leave(self, part: str) -> None: ...
    def run(
        self, part: str, original: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> R: ...
    def fetch(
        self, original: Callable[[_BaseDataLoaderIter], R], iterator: _BaseDataLoaderIter
    ) -> R: ...
    def steps(self) -> None: ...
    def has_stepped(self, optimizer: Optimizer) -> None: ...
    def turn(self, optimizer: Optimizer) -> None: ...


class WorkerTimer(Protocol):
    """The patches' view of the object that measures how long workers take to start."""

    fresh: bool

    def first(
        self, original: Callable[[_BaseDataLoaderIter], R], iterator: _BaseDataLoaderIter
    ) -> R: ...
    def stop(
        self, original: Callable[[_BaseDataLoaderIter], None], iterator: _BaseDataLoaderIter
    ) -> None: ...


class HeldCalls(Protocol):
    """The patches' view of the object that keeps the calls of an update until its backward is
    done."""

    holds: bool
    roots: set[int]

    def takes(self, module: nn.Module | None) -> bool: ...
    def run(
        self,
        original: Callable[..., R],
        module: nn.Module | None,
        args: Args,
        kwargs: Kwargs,
        frame: FrameType,
    ) -> R: ...
    def begin(
        self,
        function: Callable[..., Any],
        args: Args,
        kwargs: Kwargs,
        frame: FrameType,
        *,
        look: bool = False,
    ) -> list[Any] | None: ...
    def done(self, raw: list[Any] | None, output: object, *, look: bool = False) -> None: ...
    def release(self) -> None: ...


class Unsampled(Protocol):
    """The patches' own notes of updates that are not sampled."""

    on: bool
    thread: int
    parameter: Any
    limit: float
    optimizer: Any
    numbers: list[float]
    sizes: list[float]
    ends: list[int]
    open: bool
    left: int

    def begin(self) -> None: ...
    def leave(self) -> None: ...


class CallPatch(Protocol):
    """The patch around the calls of modules."""

    def put_on(self) -> None: ...
    def take_off(self) -> None: ...


class Moment(Generic[P]):
    """Something that happens. Subscribers hear of it in the order in which they subscribed, and no
    error of theirs reaches the program.

    `missed`: after an error nothing is concluded from what the program has not done.
    """

    def __init__(self, hub: Hub, *, missed: bool = False) -> None:
        self._hub = hub
        self._missed = missed
        self._subscribers: list[Callable[P, object]] = []

    def subscribe(self, *callbacks: Callable[P, object]) -> None:
        self._subscribers += callbacks

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        for callback in self._subscribers:
            try:
                callback(*args, **kwargs)
            except Exception as error:  # whatever it is, the program continues
                self._hub.failed(error, missed=self._missed)


class ProbeMoment(Moment[P]):
    """One at which tensors are read: not while several threads train, and unseen by the modes of
    the program."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        hub = self._hub
        if not self._subscribers:
            return
        with hub.lock:
            if not hub.multithreaded:
                hub.guarded(super().__call__, *args, **kwargs)


class Hub:
    """Of one watched process: what the patches test, and the moments that they publish."""

    def __init__(self) -> None:
        self.sampling = True
        """The program is looked at; most patches do nothing while this is False."""
        self.active = False
        """The patches are on."""
        self.checks_finite = False
        """The non-finite monitor asks at every backward."""
        self.follows_training = False
        """The training monitor asks at every update."""
        self.updates = 0
        """Steps of optimizers."""
        self.multithreaded = False
        """Several threads run backwards at the same time."""
        self.training_thread: int | None = None
        """The thread that runs backwards; the first one, if there are several."""
        self.lock = threading.RLock()
        """Held while gradients are read that a second thread might write."""
        self.cut = False
        """The program continues, or would have continued, unseen: nothing is concluded from what it
        has not done."""
        self.errors: list[str] = []
        """Errors of the watching itself."""
        self.rank: int | None = None
        """Number in the process group, also when that is gone."""
        self.timer: Timer
        self.worker_starts: WorkerTimer
        self.calls: HeldCalls
        self.unsampled: Unsampled
        self.call_patch: CallPatch | None = None
        self.sample: Callable[..., None]
        """Sample the next turns: `sample(turns=..., why=...)`."""
        self._process = os.getpid()
        self._make_moments()

    def _make_moments(self) -> None:
        every = Moment[[Any, FrameType]]
        self.loss_scaled = Moment[[Any, Any]](self, missed=True)
        """The argument and the result of a gradient scaler."""
        self.backward_begins = every(self)
        """Any backward, with its tensors."""
        self.backward_ended = Moment[[Any, FrameType, bool]](self)
        """With its tensors, and whether its graph is kept."""
        self.batch_fetched = Moment[[Any]](self, missed=True)
        """By an iterator of a loader."""
        self.optimizer_stepped = Moment[[Optimizer, FrameType]](self)
        self.updated = Moment[[]](self, missed=True)
        """An optimizer has stepped, and nobody else is to hear of it before the next update."""
        self.update_ended = Moment[[]](self, missed=True)
        """The update is counted."""
        self.compiled_update = Moment[[bool]](self, missed=True)
        """A micro-batch was one compiled graph, and an update with it if True."""
        self.evaluation_loss = Moment[[str, Any, Any, Any, FrameType]](self)
        """A loss without a graph: its kind, `args`, `kwargs` and output."""
        self.loader_begins = Moment[[Any, Any, Any, float, float]](self, missed=True)
        """A loop over a loader: the loader, its thing, its iterator, made from when to when."""
        self.mode_switched = Moment[[Any, bool]](self, missed=True)
        self.compiles = Moment[[]](self, missed=True)
        """`torch.compile` was called."""
        self.gradients_used = Moment[[FrameType]](self, missed=True)
        """Gradients and parameters are about to be used: has the program edited them by hand?"""
        self.gradients_written = Moment[[]](self, missed=True)
        """By a call that was seen."""
        self.parameters_written = Moment[[]](self, missed=True)
        self.loop_turned = Moment[[]](self, missed=True)
        self.sampling_ended = Moment[[]](self, missed=True)
        self.missed_something = Moment[[]](self)
        self.closes = Moment[[]](self, missed=True)
        """The last update to be watched has been made, and the patches are to be taken off."""
        # What probes hear, while the program is sampled.
        self.entered = ProbeMoment[[Any, Any, list[Any]]](self)
        self.called = ProbeMoment[[Any, list[Any], Any]](self)
        self.after_forward = ProbeMoment[[Any, Any, Any, Any]](self)
        self.lost = ProbeMoment[[Any, Any, Any]](self)
        self.before_backward = ProbeMoment[[Any, Any, FrameType]](self)
        self.after_backward = ProbeMoment[[FrameType]](self)
        self.gradient_taken = ProbeMoment[[Any, FrameType]](self)
        self.before_step = ProbeMoment[[Optimizer, FrameType]](self)
        self.after_step = ProbeMoment[[Optimizer, Any, FrameType]](self)
        self.fetched = ProbeMoment[[Any, Any]](self)
        self.summed = ProbeMoment[[str, Any, FrameType]](self)
        self.made = ProbeMoment[[Optimizer, FrameType]](self)
        self.unwatched = ProbeMoment[[]](self)

    @property
    def is_here(self) -> bool:
        """This is the process that is watched, and no child of it."""
        return os.getpid() == self._process

    def guarded(self, act: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | None:
        """Run our own code: no error of it reaches the program, and no mode or class of the
        program's sees its operations."""
        timer, timed = self.timer, False
        try:
            timed = timer.on and timer.enter(timer.own)
            with no_torch_function():
                if not dispatch_modes():
                    return act(*args, **kwargs)
                with no_torch_dispatch():
                    return act(*args, **kwargs)
        except Exception as error:  # whatever it is, the program continues
            self.failed(error, missed=True)
            return None
        finally:
            if timed:
                timer.leave(timer.own)

    def failed(self, error: Exception, *, missed: bool = False) -> None:
        """Something of ours has failed: the program must not notice; the report names it.

        `missed`: something that the program has done may not have been seen, so that nothing is
        concluded from what it has not done.
        """
        if os.environ.get("TRUELOOP_WATCH_DEBUG"):
            raise error
        line = type(error).__name__
        try:
            line = _described(error)
            if missed:
                self.cut = True
                self.missed_something()
        except Exception as another:  # the first one is reported
            line += f", and {type(another).__name__} on top of it"
        if line not in self.errors:
            self.errors.append(line)

    def refresh_call_patch(self) -> None:
        """A wrapper around the calls of modules costs each of them: it is there while it is needed.
        The compiler does not mind, as it does where other functions change."""
        if self.call_patch is None or not self.active:
            return
        if self.sampling or self.timer.on or (self.checks_finite and self.calls.holds):
            self.call_patch.put_on()
        else:
            self.call_patch.take_off()

    def note_training_thread(self) -> None:
        """A thread is about to run a backward; asked before every one.

        What a backward of a second thread writes just now must not be read: torch writes it without
        the interpreter's lock, and the process would die of it.
        """
        here = threading.get_ident()
        if here == self.training_thread:
            return
        if self.training_thread not in {thread.ident for thread in threading.enumerate()}:
            self.training_thread = here
            return
        with self.lock:
            self.multithreaded = True
            self.unsampled.leave()


def _described(error: Exception) -> str:
    """The error and its place, in one line."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # an error of the program's, which cannot say what it is
        text = type(error).__name__
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return text
    return f"{text} ({os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno})"
