"""Calls of the program made again, on copies, with nothing of the program's touched."""

from __future__ import annotations

import copy
import io
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

from trueloop.doctor.live.nonfinite import recent_calls
from trueloop.doctor.live.nonfinite.operation_trace import OperationTrace
from trueloop.doctor.live.objects import autograd_graph, hook_numbers, inspection

if TYPE_CHECKING:
    from trueloop.doctor.live.hub import Args, Kwargs
    from trueloop.doctor.live.nonfinite.recent_calls import Call, RecentCalls

_WRAPPERS = ("DistributedDataParallel", "DataParallel", "OptimizedModule")
_SPEAK = ("FullyShardedDataParallel", "SyncBatchNorm")
"""To other processes."""


class CannotRerunError(Exception):
    """A call cannot be made again by itself."""


def alone(module: nn.Module, meet: Callable[[torch.Tensor], object]) -> nn.Module:
    """A module without its wrappers; `meet` is given the tensors in its parts' attributes."""
    while type(module).__name__ in _WRAPPERS:
        inner = module._modules.get("module", module._modules.get("_orig_mod"))
        assert inner is not None
        module = inner
    for part in module.modules():
        if type(part).__name__ in _SPEAK:
            raise CannotRerunError("it would speak to other processes")
        for value in vars(part).values():
            for each in autograd_graph.tensors_in(value):
                meet(each)
    return module


class Again(NamedTuple):
    """A call, made again."""

    call: Call
    tape: OperationTrace
    outputs: list[Any]
    """The tensors that it gives."""
    ends: list[int]
    """Their values on the tape."""
    module: Any
    """The copy that was called; None for a function."""
    begin: int
    """The first operation of it on the tape."""


@contextmanager
def untouched(calls: RecentCalls) -> Iterator[None]:
    """Whatever is drawn, printed or warned of in here leaves no trace."""
    numpy = sys.modules.get("numpy")
    before, python = recent_calls.rng_state(), random.getstate()
    other = None if numpy is None else numpy.random.get_state()
    hub = calls.hub
    sampling, active, held = hub.sampling, hub.active, calls.inside
    hub.sampling = hub.active = False
    hub.unsampled.leave()
    calls.inside = True
    anomaly = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    cudnn = torch.backends.cudnn.benchmark
    try:
        with ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            stack.enter_context(redirect_stdout(io.StringIO()))
            stack.enter_context(redirect_stderr(io.StringIO()))
            yield
    finally:
        torch.set_anomaly_enabled(*anomaly)
        torch.backends.cudnn.benchmark = cudnn
        hub.sampling, hub.active, calls.inside = sampling, active, held
        recent_calls.set_rng_state(before)
        random.setstate(python)
        if numpy is not None:
            numpy.random.set_state(other)


class Rerun:
    """The kept calls of one update, run again one after the other on one trace."""

    def __init__(self, *, grad: bool) -> None:
        self.tape = OperationTrace(call_on.__code__)
        self.grad = grad
        self._memo: dict[int, Any] = {}
        self._held: list[Any] = []
        """A copy lives as long as the memo that knows it by its identity."""
        self.leaves: dict[str, Any] = {}
        """Parameters of the copies, by name, and inputs that gradients flow to."""

    def make(self, call: Call) -> Again:
        """Make a call again. Raises `CannotRerunError`, or whatever the program's code raises."""
        module = None
        function = call.function
        if isinstance(function, nn.Module):
            module = function = self._copy(function)
            _follow(module, self.tape)
        args, kwargs = self._arguments(call)
        if call.rng is not None:
            recent_calls.set_rng_state(call.rng)
        begin = len(self.tape.operations)
        device, dtype = call.autocast or ("cpu", None)
        with (
            torch.set_grad_enabled(self.grad),
            torch.autocast(device, dtype, enabled=call.autocast is not None),
        ):
            self.tape.inside.clear()
            output = call_on(self.tape, function, args, kwargs)
        outputs = list(autograd_graph.tensors_in(output))
        originals = [reference() for reference in call.outputs]
        if len(originals) == len(outputs):
            for original, again in zip(originals, outputs, strict=True):
                if original is not None:
                    self._memo[id(original)] = again
                    self._held.append(original)
        ends = [self.tape.index_of(each) for each in outputs]
        return Again(call, self.tape, outputs, ends, module, begin)

    def _copy(self, module: nn.Module) -> nn.Module:
        module = alone(module, self._remember)
        for each in (*inspection.weights(module), *module.buffers()):
            if hasattr(each, "to_local"):
                raise CannotRerunError("its parameters are spread over processes")
        made = copy.deepcopy(module, self._memo)
        self._held.append(module)
        for kind, found in (
            ("parameter", made.named_parameters()), ("buffer", made.named_buffers())
        ):  # fmt: skip
            for name, each in found:
                self.tape.name(each, kind, name)
                if kind == "parameter" and each.requires_grad:
                    self.leaves.setdefault(name, each)
        return made

    def _remember(self, tensor: torch.Tensor) -> None:
        """A tensor that is not a leaf cannot be copied by itself."""
        if tensor.grad_fn is not None and id(tensor) not in self._memo:
            self._memo[id(tensor)] = tensor.detach().clone()
            self._held.append(tensor)

    def _arguments(self, call: Call) -> tuple[Any, Any]:
        names = argument_names(call.function, len(call.args))
        args = tuple(map(_alive, call.args))
        kwargs = {key: _alive(value) for key, value in call.kwargs.items()}
        given = [*zip(names, args, strict=False), *kwargs.items()]
        for name, value in given:
            for each in autograd_graph.tensors_in(value):
                if id(each) in self._memo:
                    continue
                made = each.detach().clone()
                if self.grad and each.requires_grad:
                    made.requires_grad_()
                    self.leaves[f"input {name}"] = made
                self._memo[id(each)] = made
                self._held.append(each)
                self.tape.name(made, "input", name)
        made_args: tuple[Any, Any] = copy.deepcopy((args, kwargs), self._memo)
        return made_args


def _alive(value: object) -> Any:
    if not isinstance(value, recent_calls.Light):
        return value
    found = value.tensor()
    if found is None:
        raise CannotRerunError("a result that it was given is gone")
    return found


def call_on(tape: OperationTrace, function: Any, args: Args, kwargs: Kwargs) -> Any:
    """The frame from which on lines are the program's own."""
    with tape:
        return function(*args, **kwargs)


def gradients(rerun: Rerun, again: Again) -> list[tuple[str, Any]]:
    """The gradients of what a call gives, with respect to its leaves."""
    ends = [each for each in again.outputs if each.requires_grad and each.is_floating_point()]
    leaves = list(rerun.leaves.items())
    if not ends or not leaves:
        return []

    def take() -> Any:
        return torch.autograd.grad(
            ends, [each for _, each in leaves], [torch.ones_like(each) for each in ends],
            allow_unused=True, retain_graph=True,
        )  # fmt: skip

    rerun.tape.inside.clear()
    found = call_on(rerun.tape, take, (), {})
    return [(name, each) for (name, _), each in zip(leaves, found, strict=True) if each is not None]


def argument_names(function: Any, count: int) -> list[str]:
    """The names of a call's arguments in its own definition."""
    import inspect

    target = function.forward if isinstance(function, nn.Module) else function
    try:
        known = [
            each.name for each in inspect.signature(target).parameters.values()
            if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ]  # fmt: skip
    except (TypeError, ValueError):
        known = []
    return [*known, *(f"argument {position}" for position in range(len(known), count))][:count]


def _hooks_of(module: nn.Module) -> tuple[dict[int, Any], ...]:
    return (
        module._forward_hooks, module._forward_pre_hooks,
        module._backward_hooks, module._backward_pre_hooks,
    )  # fmt: skip


def drop_hooks(module: nn.Module) -> None:
    """Those of the program on a copy of a module: what they do elsewhere would be done twice."""
    for hooks in _hooks_of(module):
        for key, hook in list(hooks.items()):
            if not str(getattr(type(hook), "__module__", "")).startswith("torch."):
                del hooks[key]


def _follow(root: nn.Module, tape: OperationTrace) -> None:
    """Hooks on the copy show which of its modules computes; those of the program are skipped."""
    for name, module in root.named_modules():
        drop_hooks(module)
        kind = type(module).__name__

        def enter(_: Any, __: Any, name: str = name, kind: str = kind) -> None:
            tape.inside.append((name, kind))

        def leave(_: Any, __: Any, ___: Any) -> None:
            if tape.inside:
                tape.inside.pop()

        with hook_numbers.of_the_watcher():
            module.register_forward_pre_hook(enter, prepend=True)
            module.register_forward_hook(leave, always_call=True)
