"""Torch's engine of autograd, and the kernels of its fused Adam, AdamW and SGD, called without the
Python around them.

`optimizer.step()` goes through its parameters one by one, gathers their tensors and sorts them by
device, and only then calls a kernel: in a small model that takes longer than the kernel. Here the
lists are gathered once, and compared before each update, in a few passes in C. The arithmetic is
that of `optimizer.step()`, bit for bit. Wherever anything is unusual, and wherever somebody listens
to `optimizer.step` (hooks, a profiler, a function in its place), that is what is called. The same
is true of `loss.backward()`.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar

import torch
from torch import Tensor, autograd
from torch.autograd import graph, profiler
from torch.optim import SGD, Adam, AdamW, Optimizer, optimizer as optim
from torch.optim.lr_scheduler import LRScheduler

from trueloop.step.accumulate import PLAIN, gradient_of, is_sparse

_same = operator.is_
_params_of = operator.itemgetter("params")
_switches = operator.itemgetter("maximize", "foreach", "differentiable")


class FusedUpdate:
    """One optimizer's step: its kernels where that is the same, else `optimizer.step()`."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self._kind = _KINDS.get(type(optimizer))
        self._groups: list[_Adam | _SGD] = []
        """Of each parameter group its part of the state; empty: not gathered."""
        self._parameters: list[Tensor] = []
        self._ends: list[int] = []
        """Where each group ends among the parameters."""
        self._state: Any = None
        """The optimizer's `state` when they were gathered, its entries, and the values in them."""
        self._entries: list[dict[str, Any]] = []
        self._values: list[Any] = []
        self._misses = 0
        self._steps: tuple[Any, Any] = (None, None)
        """The optimizer's own `step`, if it has one, and its class's, as they were looked at."""
        self._is_torchs = False
        """Whether those are torch's."""

    def __reduce__(self) -> Any:
        """A copy gathers its own lists."""
        return FusedUpdate, (self.optimizer,)

    def step(self) -> None:
        """Change the parameters, and the optimizer's state, by their gradients."""
        optimizer = self.optimizer
        own = vars(optimizer)
        steps = own.get("step"), type(optimizer).step
        if steps[0] is not self._steps[0] or steps[1] is not self._steps[1]:
            self._look_at(*steps)
        if (
            # Somebody would notice that `optimizer.step` is not called.
            self._kind is None
            or not self._is_torchs
            or optimizer._optimizer_step_pre_hooks
            or optimizer._optimizer_step_post_hooks
            or optim._global_optimizer_pre_hooks
            or optim._global_optimizer_post_hooks
            or profiler._is_profiler_enabled
            or "grad_scale" in own
            or "found_inf" in own
        ):
            optimizer.step()
            return
        gradients = self._gradients()
        if gradients is None:
            self.optimizer.step()
            self._misses += 1
            # Some models never fit: they are looked at less and less often.
            if self._misses & (self._misses - 1) == 0:
                self._gather()
            return
        start, enabled = 0, torch.is_grad_enabled()
        torch._C._set_grad_enabled(False)
        try:
            for mine, group, end in zip(
                self._groups, self.optimizer.param_groups, self._ends, strict=True
            ):
                mine.run(group, group["params"], gradients[start:end])
                start = end
        finally:
            torch._C._set_grad_enabled(enabled)
        if self._steps[0] is not None:
            # As torch's wrapper for its schedulers does: they warn where no step came before them.
            self.optimizer._opt_called = True  # type: ignore[attr-defined]

    def _look_at(self, own: Any, of_class: Any) -> None:
        """Find out whether the optimizer's `step`, its own or its class's, is torch's."""
        self._steps = own, of_class
        is_wrapped = hasattr(own, "_wrapped_by_lr_sched") and _is_torchs(own)
        self._is_torchs = _is_torchs(of_class) and (own is None or is_wrapped)

    def _gradients(self) -> list[Any] | None:
        """The gradients of all parameters; None unless what was gathered fits the optimizer."""
        groups, state = self.optimizer.param_groups, self.optimizer.state
        held = list(map(_params_of, groups))
        if (
            state is not self._state
            or len(groups) != len(self._groups)
            or len(state) != len(self._entries)
            or sum(map(len, held)) != len(self._parameters)
            or sum(map(len, self._entries)) != len(self._values)
            or not all(map(_same, chain.from_iterable(held), self._parameters))
            or not all(map(_same, state.values(), self._entries))
            or not all(
                map(_same, chain.from_iterable(map(dict.values, self._entries)), self._values)
            )
            or not all(map(_takes, self._groups, groups))
        ):
            return None
        gradients = list(map(gradient_of, self._parameters))
        if set(map(type, gradients)) != PLAIN or any(map(is_sparse, gradients)):
            return None
        return gradients

    def _gather(self) -> None:
        """Make the lists; leave them empty where the kernels cannot be called."""
        assert self._kind is not None
        optimizer = self.optimizer
        self._groups, self._parameters, self._ends = [], [], []
        self._state = optimizer.state
        self._entries = list(self._state.values())
        self._values = [value for entry in self._entries for value in entry.values()]
        for group in optimizer.param_groups:
            entries = [self._state.get(p, {}) for p in group["params"]]
            names = self._kind.names(group)
            if not (entries and all(map(_is_plain, group["params"], entries))):
                self._groups = []
                return
            if any(set(entry) != set(names) for entry in entries):
                self._groups = []
                return
            self._groups.append(self._kind(entries))
            self._parameters += group["params"]
            self._ends.append(len(self._parameters))


def _is_plain(parameter: Tensor, entry: dict[str, Any]) -> bool:
    """Whether the parameter and its state are ordinary tensors of real numbers on the CPU."""
    tensors = [parameter.detach(), *entry.values()]
    return parameter.is_floating_point() and all(
        type(t) is Tensor and t.is_cpu and not t.requires_grad and t.layout is torch.strided
        for t in tensors
    )


def _is_torchs(step: Any) -> bool:
    """Whether a `step` is torch's, with nothing but wrappers of torch's around it."""
    while step is not None:
        file = getattr(getattr(step, "__code__", None), "co_filename", None)
        if file not in _FILES:
            return False
        step = getattr(step, "__wrapped__", None)
    return True


_FILES = frozenset(map(inspect.getfile, (Optimizer, Adam, AdamW, SGD, LRScheduler)))


class _Adam:
    """A group of Adam or AdamW: what `_fused_adam` in torch/optim/adam.py does with it."""

    decoupled: ClassVar[bool] = False

    def __init__(self, entries: Sequence[dict[str, Any]]) -> None:
        self._steps = [entry["step"] for entry in entries]
        self._means = [entry["exp_avg"] for entry in entries]
        self._squares = [entry["exp_avg_sq"] for entry in entries]
        # To add 1 to one of these numbers takes torch a microsecond, and Python a tenth of that.
        self._counts: list[Any] = [memoryview(step.numpy().reshape(1)) for step in self._steps]

    @staticmethod
    def names(group: dict[str, Any]) -> tuple[str, ...]:
        return ("step", "exp_avg", "exp_avg_sq")

    def run(self, group: dict[str, Any], parameters: list[Tensor], gradients: list[Any]) -> None:
        for count in self._counts:
            count[0] += 1.0
        (first, second), decoupled = group["betas"], group.get("decoupled_weight_decay")
        kernel = (
            torch._fused_adamw_
            if (self.decoupled if decoupled is None else decoupled)
            else torch._fused_adam_
        )
        kernel(
            parameters,
            gradients,
            self._means,
            self._squares,
            [],
            self._steps,
            amsgrad=False,
            lr=group["lr"],
            beta1=first,
            beta2=second,
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=False,
        )


class _AdamW(_Adam):
    decoupled = True


class _SGD:
    """A group of SGD: what `_fused_sgd` in torch/optim/sgd.py does with it after its first step."""

    def __init__(self, entries: Sequence[dict[str, Any]]) -> None:
        self._buffers = [entry["momentum_buffer"] for entry in entries if entry]

    @staticmethod
    def names(group: dict[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] else ()

    def run(self, group: dict[str, Any], parameters: list[Tensor], gradients: list[Any]) -> None:
        torch._fused_sgd_(
            parameters,
            gradients,
            self._buffers,
            weight_decay=group["weight_decay"],
            momentum=group["momentum"],
            lr=group["lr"],
            dampening=group["dampening"],
            nesterov=group["nesterov"],
            maximize=False,
            is_first_step=False,
        )


def _takes(mine: _Adam | _SGD, group: dict[str, Any]) -> bool:
    """Whether a group is fused, its other switches are off, and its numbers are plain."""
    first, second = group.get("betas", (0.0, 0.0))
    return bool(
        group["fused"]
        and type(group["lr"]) is type(first) is type(second) is float
        and not any(_switches(group))
        and not group.get("capturable")
        and not group.get("amsgrad")
        and (type(mine) is not _SGD or bool(group["momentum"]) == bool(mine._buffers))
    )


_KINDS: dict[type[Optimizer], type[_Adam] | type[_SGD]] = {Adam: _Adam, AdamW: _AdamW, SGD: _SGD}


def _if_torchs(function: Any, file: str | None) -> Any:
    """`function`, if it is torch's own and nobody has put a wrapper in its place."""
    code = getattr(function, "__code__", None)
    return function if code is not None and code.co_filename == file else None


_METHOD = _if_torchs(Tensor.backward, torch._tensor.__file__)
_FUNCTION = _if_torchs(autograd.backward, autograd.__file__)


def backward(loss: Tensor) -> None:
    """`loss.backward()` of a real scalar: the same gradients, and the same call of the engine.

    Wherever somebody listens (a function in the place of torch's, a mode, a subclass of tensor), it
    is `loss.backward()` itself.
    """
    if (
        type(loss) is not Tensor
        or Tensor.backward is not _METHOD
        or autograd.backward is not _FUNCTION
        or torch._C._len_torch_function_stack()
        or torch._C._are_functorch_transforms_active()
    ):
        loss.backward()  # type: ignore[no-untyped-call]
        return
    graph._engine_run_backward(
        (loss,),
        (torch.ones_like(loss, memory_format=torch.preserve_format),),
        False,
        False,
        (),
        allow_unreachable=True,
        accumulate_grad=True,
    )
