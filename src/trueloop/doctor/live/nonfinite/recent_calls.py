"""The latest calls of models and losses from outside of any other, until their backward is done.

They are kept so that a batch whose loss is not finite can be run again. The program itself keeps
the same things between a forward and its backward: the arguments, and the state of the generators
if the call draws from them.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from types import FrameType
from typing import TYPE_CHECKING, Any
from weakref import ref

import torch
from torch import is_grad_enabled

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.hub import no_torch_function
from trueloop.doctor.live.objects import autograd_graph
from trueloop.doctor.live.objects.registry import WeakMap
from trueloop.doctor.live.tracing import function_modes, is_abstract

if TYPE_CHECKING:
    from torch import nn

    from trueloop.doctor.live.hub import Args, Hub, Kwargs, R
    from trueloop.doctor.model.findings import Location

MOST = 8
"""The most calls that are kept: a cell called in a loop is not followed to its end."""
_is_any_autocast_enabled: Callable[[], bool] = torch._C._is_any_autocast_enabled
_LARGE = 4_000_000
"""Numbers of a result that a loss is given: larger ones are not kept alive for us."""


class Call:
    """One call: what was called, with what, and where.

    `raw` is the form that is noted at every update, where each name costs: the function, its
    arguments by place and by name, where the program is (code and instruction), the generators'
    state if it draws, autocast's, and weak references to its results.
    """

    __slots__ = ("raw",)

    def __init__(self, raw: list[Any]) -> None:
        self.raw = raw

    function = property(lambda self: self.raw[0])
    args = property(lambda self: self.raw[1])
    kwargs = property(lambda self: self.raw[2])
    site = property(lambda self: (self.raw[3], self.raw[4]))
    rng = property(lambda self: self.raw[5])
    autocast = property(lambda self: self.raw[6])
    outputs = property(lambda self: self.raw[7])

    @property
    def place(self) -> Location:
        """Where the program calls it."""
        code, offset = self.site
        begins = (line for begin, end, line in code.co_lines() if begin <= offset < end and line)
        return user_frames.place_at(code, offset, next(begins, code.co_firstlineno))

    @property
    def is_users(self) -> bool:
        """The program's own code makes it, and no library's."""
        return user_frames.kind_of(self.site[0].co_filename) == "user"


class Light:
    """A large result, which is not kept alive."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = ref(tensor)


def _lightly(value: object) -> Any:
    if type(value) is torch.Tensor and value.requires_grad and value.numel() > _LARGE:
        return Light(value)
    return value


class RecentCalls:
    """Of one thread: the one that trains."""

    def __init__(self, hub: Hub) -> None:
        self.hub, self._failed = hub, hub.failed
        self.inside = False
        self.holds = True
        """At updates that nobody looks at: read by the patches."""
        self.raws: list[list[Any]] = []
        self.thread = get_ident()
        self.roots: set[int] = set()
        """`id` of modules that were called from outside of any other."""
        self.draws = WeakMap[bool]()
        """Such a module -> a call of it has drawn from the generators."""
        self._any_draws = False

    @property
    def held(self) -> list[Call]:
        return [Call(raw) for raw in self.raws]

    def takes(self, module: nn.Module | None) -> bool:
        """A call of a module, or of a loss function if that is None, is to be kept."""
        if self.inside or len(self.raws) >= MOST:
            return False
        if module is None or _is_function(module):
            if not self.raws:  # no model has been called: nothing is trained here
                return False
        elif not module.training:
            return False
        return is_grad_enabled() and get_ident() == self.thread

    @user_frames.passed_over
    def run(
        self,
        original: Callable[..., R],
        module: nn.Module | None,
        args: Args,
        kwargs: Kwargs,
        frame: FrameType,
    ) -> R:
        """Call a module as `original(module, ...)`, or a loss function if that is None, and keep
        the call. Asked at each update: what is not worth a name has none."""
        raw = None
        try:
            raws = self.raws
            if not (
                self.inside
                or len(raws) >= MOST
                or (not raws if module is None or _is_function(module) else not module.training)
                or not is_grad_enabled()
                or get_ident() != self.thread
            ):
                function = original if module is None else module
                if self._is_special(args, kwargs):
                    raw = self.begin(function, args, kwargs, frame)
                else:  # by far the most
                    frame = user_frames.of_program(frame)
                    raw = [function, args, kwargs, frame.f_code, frame.f_lasti, None, None, ()]
                    raws.append(raw)
        except Exception as error:  # whatever it is, the program continues
            self._failed(error)
        if raw is None:
            args = args if module is None else (module, *args)
            return original(*args, **kwargs)
        self.inside = True
        try:
            output = (
                original(*args, **kwargs) if module is None else original(module, *args, **kwargs)
            )
        finally:
            self.inside = False
        if type(output) is torch.Tensor:
            raw[7] = (ref(output),)
        else:
            try:
                self.done(raw, output)
            except Exception as error:
                self._failed(error)
        return output

    def _is_special(self, args: Args, kwargs: Kwargs) -> bool:
        """There is more to note of a call than its arguments by place."""
        is_plain = not (self._any_draws or kwargs or function_modes())
        if not is_plain or _is_any_autocast_enabled():
            return True
        return bool(args) and type(args[0]) is torch.Tensor and args[0].numel() > _LARGE

    def begin(
        self, function: Any, args: Args, kwargs: Kwargs, frame: FrameType, *, look: bool = False
    ) -> list[Any] | None:
        """Hold a call that is about to be made; `look`: find out whether it draws."""
        try:
            frame = user_frames.of_program(frame)
            if not isinstance(function, torch.nn.Module):
                with no_torch_function():
                    # What a model gives may be larger than all that its loss's backward needs.
                    args = tuple([_lightly(each) for each in args])
                    kwargs = {key: _lightly(value) for key, value in kwargs.items()}
            rng = None
            if look or (self._any_draws and self.draws.get(function) and not is_abstract(args)):
                rng = rng_state()
            # No frame is held: it would keep the variables of a function that has ended.
            autocast = autocast_state() if _is_any_autocast_enabled() else None
            raw = [function, args, kwargs, frame.f_code, frame.f_lasti, rng, autocast, ()]
        except Exception as error:  # whatever it is, the program continues
            self._failed(error)
            return None
        self.raws.append(raw)
        return raw

    def done(self, raw: list[Any] | None, output: object, *, look: bool = False) -> None:
        """It was made, and gave this."""
        if raw is None:
            return
        try:
            raw[7] = tuple(map(ref, autograd_graph.tensors_in(output)))
            function = raw[0]
            if look and isinstance(function, torch.nn.Module):
                self.roots.add(id(function))
                if draws_since(raw[5]):
                    self.draws.put(function, True)
                    self._any_draws = True
        except Exception as error:  # whatever it is, the program continues
            self._failed(error)

    def release(self) -> None:
        """Their gradients are computed: let go of them."""
        if self.raws:
            self.raws.clear()


def _is_function(module: nn.Module) -> bool:
    """It has no content: a loss, an activation."""
    return not module._parameters and not module._modules


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
    """Something has drawn from a generator since; None where that is not known."""
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
