"""Precision as one object: a base that does nothing special, and a small class per mode.

The parameters stay float32 in every mode; only the forward pass runs in the lower precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.optim import Optimizer

from trueloop import _options
from trueloop.shapes import COUNT, EMPTY, Shape, Where
from trueloop.step.fused_update import backward


class Precision:
    """float32 throughout, and the base of the other modes."""

    name = "fp32"
    STATE: ClassVar[Shape] = EMPTY
    """The form of the state that `load_state_dict` takes."""

    scales: ClassVar[bool] = False
    """Whether the loss is scaled: only then `unscale` and `step` are called."""
    autocast: Callable[[], AbstractContextManager[Any]] = nullcontext
    """The context of the forward pass and the loss."""
    backward: Callable[[Tensor], None] = staticmethod(backward)
    """Of the loss."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def unscale(self, optimizers: Sequence[Optimizer]) -> None:
        """Bring the gradients back to their true size, before anyone measures or clips them."""

    def step(self, optimizers: Sequence[Optimizer]) -> bool:
        """Apply the update; whether the optimizers really stepped: all of them, or none."""
        raise NotImplementedError

    def scale(self) -> Tensor | None:
        """The factor of the loss before the backward; None without one."""
        return None

    def conclude(self, norm: Tensor) -> bool:
        """Do the rest of `step` and return its result, after the optimizers' arithmetic, unless the
        `norm` of the gradient is not finite."""
        return True

    def abandon(self) -> None:
        """Leave the update out, also where `unscale` was called for it."""

    def exhausted(self) -> bool:
        """Whether a skipped update cannot be blamed on the loss scale."""
        return False

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        assert not state, f"{self.name} keeps no state"


class BFloat16(Precision):
    """bfloat16 autocast: float32's range, so no loss scaling."""

    name = "bf16"

    def autocast(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device.type, dtype=torch.bfloat16)


_SCALE = Where(float, lambda n: 0 < n < math.inf, "a finite number above 0")


class Float16(Precision):
    """float16 autocast with dynamic loss scaling (`torch.amp.GradScaler`, on the CPU too).

    Whether an update was skipped is read from the scale, which costs an accelerator one wait per
    update; bf16 has no such wait.
    """

    name = "fp16"
    scales = True
    STATE: ClassVar[Shape] = {
        "scale": _SCALE,
        "growth_factor": Where(float, lambda n: 1 < n < math.inf, "a number above 1"),
        "backoff_factor": Where(float, lambda n: 0 < n < 1, "a number between 0 and 1"),
        "growth_interval": Where(int, lambda n: 0 < n < 2**31, "an int above 0"),
        "_growth_tracker": COUNT,
    }

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self.scaler = torch.amp.GradScaler(device.type)
        self._is_unscaled = False

    def autocast(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device.type, dtype=torch.float16)

    def backward(self, loss: Tensor) -> None:
        self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]

    def unscale(self, optimizers: Sequence[Optimizer]) -> None:
        for optimizer in optimizers:
            with _sharded_alone(optimizer) as others:
                self.scaler.unscale_(optimizer)
            self._is_unscaled = True
            if others:
                self._unscale_others(optimizer, others)
        if len(optimizers) > 1:
            self._share_flags(optimizers)

    def _unscale_others(self, optimizer: Optimizer, gradients: list[Tensor]) -> None:
        """As the scaler does, of gradients that it has not seen."""
        torch._foreach_mul_(gradients, 1.0 / self.scaler.get_scale())
        found = self._flags(optimizer)
        for gradient in gradients:
            bad = ~torch.isfinite(gradient).all()
            for flag in found.values():
                flag.copy_(torch.maximum(flag, bad.to(flag)))  # at most 1, see `_share_flags`

    def _flags(self, optimizer: Optimizer) -> dict[torch.device, Tensor]:
        """For each device with gradients of the optimizer, 1 where one is not finite, else 0."""
        found: dict[torch.device, Tensor] = self.scaler._per_optimizer_states[id(optimizer)][
            "found_inf_per_device"
        ]
        return found

    def _share_flags(self, optimizers: Sequence[Optimizer]) -> None:
        """Let each optimizer know of the infinities of all: the scaler would skip the step of one,
        and take the others', which is half an update."""
        flags = [flag for optimizer in optimizers for flag in self._flags(optimizer).values()]
        if len(flags) < 2:
            return
        with torch.no_grad():
            # At most 1: fused optimizers leave their step out at exactly that.
            worst = torch.stack([flag.to(flags[0]) for flag in flags]).amax(0)
            for flag in flags:
                flag.copy_(worst)

    def step(self, optimizers: Sequence[Optimizer]) -> bool:
        before = self.scaler.get_scale()
        # An optimizer without any gradient has no flag, and the scaler refuses it.
        without = [each for each in optimizers if not self._flags(each)]
        for optimizer in optimizers:
            if len(without) == len(optimizers) or optimizer not in without:
                self.scaler.step(optimizer)
        self.scaler.update()
        self._is_unscaled = False
        # The scaler lowers its scale exactly when it has found an infinity and left the step out.
        stepped = self.scaler.get_scale() >= before
        for optimizer in without if stepped else ():
            optimizer.step()
        return stepped

    def scale(self) -> Tensor | None:
        scaler = self.scaler
        if scaler._scale is None:
            scaler._lazy_init_scale_growth_tracker(self.device)
        return scaler._scale

    def conclude(self, norm: Tensor) -> bool:
        scaler = self.scaler
        scale, tracker = scaler._scale, scaler._growth_tracker
        assert scale is not None
        assert tracker is not None
        found = (~torch.isfinite(norm)).to(scale)
        torch._amp_update_scale_(
            scale,
            tracker,
            found,
            scaler.get_growth_factor(),
            scaler.get_backoff_factor(),
            scaler.get_growth_interval(),
        )
        return not bool(found)

    def abandon(self) -> None:
        if self._is_unscaled:
            # Until then the scaler refuses to unscale the next gradient.
            self.scaler.update()
            self._is_unscaled = False

    def exhausted(self) -> bool:
        return self.scaler.get_scale() < 1.0

    def state_dict(self) -> dict[str, Any]:
        return dict(self.scaler.state_dict())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.scaler.load_state_dict(state)


@contextmanager
def _sharded_alone(optimizer: Optimizer) -> Iterator[list[Tensor]]:
    """Within it, an optimizer of sharded parameters (`DTensor`) and others shows only the sharded
    ones' gradients, as torch's scaler cannot take both at once; yields the others'."""
    held = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    others = [p for p in held if not hasattr(p, "placements")]
    if len(others) in (0, len(held)):
        yield []
        return
    gradients = [p.grad for p in others]
    for p in others:
        p.grad = None
    try:
        yield gradients
    finally:
        for p, gradient in zip(others, gradients, strict=True):
            p.grad = gradient


_MODES: dict[str, type[Precision]] = {mode.name: mode for mode in (Precision, BFloat16, Float16)}


def by_name(name: str, device: torch.device) -> Precision:
    """`fp32`, `bf16` or `fp16` on `device`; `ConfigError` for any other name."""
    return _MODES[_options.by_name("precision", name, _MODES)](device)
