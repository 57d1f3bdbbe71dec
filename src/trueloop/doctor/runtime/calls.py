"""The latest calls of models and losses from outside of any other, until their backward is done.

They are held so that a batch whose loss is not finite can be run again. What is held is what the
program itself holds anyway between a forward and its backward: the arguments, and the state of the
generators if the call draws from them.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from trueloop.doctor.runtime import frames, graph
from trueloop.doctor.runtime.things import Weak
from trueloop.doctor.runtime.tracing import is_abstract

if TYPE_CHECKING:
    from trueloop.doctor.findings import Place

MOST = 8
"""Calls that are held: a cell called in a loop is not followed to its end."""
_is_any_autocast_enabled: Callable[[], bool] = torch._C._is_any_autocast_enabled
_LARGE = 4_000_000
"""Numbers of a result that a loss is given: larger ones are not kept alive for us."""


class Call:
    """One call: what was called, with what, and where."""

    __slots__ = ("args", "autocast", "function", "kwargs", "outputs", "rng", "site")

    def __init__(self, function: Any, args: Any, kwargs: Any, frame: Any) -> None:
        self.function = function
        if isinstance(function, torch.nn.Module):
            self.args, self.kwargs = args, kwargs
        else:  # of a loss: what a model gives may be larger than all that its backward needs
            self.args = tuple(map(_lightly, args))
            self.kwargs = {key: _lightly(value) for key, value in kwargs.items()}
        while frames.kind_of(frame.f_code.co_filename) == "inside" and frame.f_back is not None:
            frame = frame.f_back
        # No frame is held: it would keep the variables of a function that has ended.
        self.site = (frame.f_code, frame.f_lasti)
        self.rng: tuple[Any, ...] | None = None
        self.autocast = autocast_state() if _is_any_autocast_enabled() else None
        self.outputs: tuple[Any, ...] = ()

    @property
    def place(self) -> Place:
        """Where the program calls it."""
        code, offset = self.site
        begins = (line for begin, end, line in code.co_lines() if begin <= offset < end and line)
        return frames.place_at(code, offset, next(begins, code.co_firstlineno))

    @property
    def is_users(self) -> bool:
        """The program's own code makes it, and no library's."""
        return frames.kind_of(self.site[0].co_filename) == "user"


class Light:
    """A large result, which is not kept alive."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = weakref.ref(tensor)


def _lightly(value: Any) -> Any:
    if type(value) is torch.Tensor and value.requires_grad and value.numel() > _LARGE:
        return Light(value)
    return value


class Calls:
    """Of one thread: the one that trains."""

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self._failed = failed
        self.inside = False
        self.held: list[Call] = []
        self.thread = threading.get_ident()
        self.roots: set[int] = set()
        """`id` of modules that were called from outside of any other."""
        self.draws = Weak()
        """Such a module -> a call of it has drawn from the generators."""

    def takes(self, module: Any) -> bool:
        """A call of a module, or of a loss function if that is None, is to be held."""
        if self.inside or len(self.held) >= MOST:
            return False
        if module is None or (not module._parameters and not module._modules):
            if not self.held:  # no model has been called: nothing is trained here
                return False
        elif not module.training:
            return False
        return torch.is_grad_enabled() and threading.get_ident() == self.thread

    def run(self, original: Any, module: Any, args: Any, kwargs: Any, frame: Any) -> Any:
        """Call a module as `original(module, ...)`, or a function if that is None, and hold it."""
        call = self.begin(original if module is None else module, args, kwargs, frame)
        self.inside = True
        try:
            output = (
                original(*args, **kwargs) if module is None else original(module, *args, **kwargs)
            )
        finally:
            self.inside = False
        self.done(call, output)
        return output

    def begin(
        self, function: Any, args: Any, kwargs: Any, frame: Any, *, look: bool = False
    ) -> Call | None:
        """Hold a call that is about to be made; `look`: find out whether it draws."""
        try:
            call = Call(function, args, kwargs, frame)
            if look or (self.draws.get(function) and not is_abstract(args)):
                call.rng = rng_state()
        except Exception as error:  # whatever it is, the program goes on
            self._failed(error)
            return None
        self.held.append(call)
        return call

    def done(self, call: Call | None, output: Any, *, look: bool = False) -> None:
        """It was made, and gave this."""
        if call is None:
            return
        try:
            if type(output) is torch.Tensor:
                call.outputs = (weakref.ref(output),)
            else:
                call.outputs = tuple(map(weakref.ref, graph.tensors_in(output)))
            if look and isinstance(call.function, torch.nn.Module):
                self.roots.add(id(call.function))
                if draws_since(call.rng):
                    self.draws.put(call.function, True)
        except Exception as error:  # whatever it is, the program goes on
            self._failed(error)

    def release(self) -> None:
        """Their gradients are computed: let go of them."""
        if self.held:
            self.held.clear()


def rng_state() -> tuple[Any, ...]:
    """Of torch's generators: the CPU's, and the present device's where there is one."""
    states = [torch.get_rng_state()]
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        states.append(torch.cuda.get_rng_state())
    return tuple(states)


def set_rng_state(states: tuple[Any, ...]) -> None:
    torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state(states[1])


def draws_since(before: tuple[Any, ...] | None) -> bool | None:
    """Something has drawn from a generator since; None where that cannot be told."""
    if before is None:
        return None
    now = rng_state()
    return len(now) != len(before) or not all(map(torch.equal, before, now))


def autocast_state() -> tuple[str, Any] | None:
    if not torch.is_autocast_enabled():
        if not torch.is_autocast_enabled("cpu"):
            return None
        return "cpu", torch.get_autocast_dtype("cpu")
    return "cuda", torch.get_autocast_dtype("cuda")
