"""`Step(on_oom="accumulate")`: a batch that does not fit into memory is made in parts.

Parts with mean losses L_j over n_j samples or tokens give sum(n_j grad L_j) / sum(n_j): the
gradient of the whole batch, but for the order of the sums. Each part's backward follows its
forward, so that only the activations of one part are there at a time.

The step sees one micro-batch as ever. Its loss is a number with a graph of a single node, whose
backward is the real one: of the whole batch, or of its parts where that runs out of memory. So all
references to the activations are here, and can be dropped.
"""

from __future__ import annotations

import copy
import gc
import itertools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from trueloop import _options, ranks
from trueloop.device import is_out_of_memory
from trueloop.errors import ConfigError, DeviceError
from trueloop.records import LossOutput, batch_counts, resolve_count
from trueloop.step.accumulate import Number, times
from trueloop.step.base import StepBase
from trueloop.step.open_windows import detached
from trueloop.step.parallel import LossFn, Parallel

_SINGLE = (type(None), bool, int, float, str, bytes)


def by_option(on_oom: str, step: StepBase, compile: Any) -> Parallel:
    """The step's strategy, or the one that splits; `ConfigError` where it cannot."""
    _options.choice("on_oom", on_oom, ("stop", "accumulate"))
    if on_oom == "stop":
        return step._parallel
    if ranks.is_distributed():
        raise ConfigError(
            f"on_oom='accumulate' is for one process, and {ranks.world_size()} ranks train here, "
            "which would have to split alike: lower the batch size, or raise accumulate"
        )
    if compile in ("step", "auto"):
        raise ConfigError(
            f"on_oom='accumulate' cannot split an update that is one graph (compile={compile!r}): "
            "write compile=True, or leave one of them out"
        )
    return Splitting(step)


class Splitting(Parallel):
    """One process, whose batches are split where they are too large."""

    def __init__(self, step: StepBase) -> None:
        super().__init__(step._parallel.model, step._parallel.view)
        self._step = step
        self.parts: dict[int, int] = {}
        """By the samples of a batch, into how many parts it is split."""

    def loss(self, loss_fn: LossFn, view: nn.Module, batch: Any) -> LossOutput:
        """The result of `loss_fn(view, batch)`, with a backward that may be split."""
        work = _SplitBatch(self, loss_fn, view, batch)
        output = work.forward()
        if not output.loss.requires_grad:
            return output
        leaf = output.loss.detach().requires_grad_()
        is_asked = self._step.on_outputs is not None
        return LossOutput(
            _Deferred.apply(leaf, work),  # type: ignore[no-untyped-call]
            output.count,
            detached(output.outputs) if is_asked else None,
            detached(output.targets) if is_asked else None,
            detached(dict(output.parts)),
        )

    @property
    def leaves(self) -> list[Tensor]:
        """The parameters that a backward gives gradients to."""
        held = itertools.chain(self.model.parameters(), self._step._gradients.held)
        return list({id(p): p for p in held}.values())

    def remember(self, samples: int, parts: int) -> None:
        """Split batches of that size from now on, and warn once."""
        if self.parts.get(samples, 1) == parts:
            return
        self.parts[samples] = parts
        modes = [m for m in self.model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
        normed = any(m.training for m in modes)
        warnings.warn(
            f"out of memory with a batch of {samples:,} samples: such batches are now made in "
            f"{parts:,} parts, with the gradient of the whole batch"
            + (
                ", but for batch norm, which takes its statistics from each part: lower the batch "
                "size if that matters"
                if normed
                else ""
            ),
            RuntimeWarning,
            stacklevel=1,
        )


class _SplitBatch:
    """The forward and the backward of one batch."""

    def __init__(self, owner: Splitting, loss_fn: LossFn, view: nn.Module, batch: Any) -> None:
        self._owner = owner
        self._step = owner._step
        self._call = (loss_fn, view)
        self._batch = batch
        self._samples = batch_counts(batch)[0] or 1
        self._loss: Tensor | None = None
        self._gradients: list[Tensor | None] | None = None
        """Of the mean loss of the parts, once they are made."""

    def forward(self) -> LossOutput:
        """The batch's output; where the batch is known to be too large, or turns out to be, it is
        that of its parts, and their backward is made."""
        if self._samples not in self._owner.parts:
            try:
                output = self._output(self._batch)
                self._loss = output.loss
                return output
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
            # Here the error is gone, and with it the frames that hold the activations.
            _free()
        return self._in_parts()

    def backward(self, gradient: Tensor) -> None:
        """Add the gradient of the loss, times `gradient`, to the parameters."""
        leaves = self._owner.leaves
        before = [leaf.grad for leaf in leaves]
        _clear(leaves)
        if self._loss is not None:
            loss, self._loss = self._loss, None
            try:
                torch.autograd.backward(loss, gradient)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                del loss
            else:
                _add(leaves, before)
                return
            _clear(leaves)
            _free()
            self._in_parts()
        assert self._gradients is not None
        for leaf, found in zip(leaves, self._gradients, strict=True):
            leaf.grad = None if found is None else found.mul_(gradient)
        _add(leaves, before)

    def _output(self, batch: Any) -> LossOutput:
        loss_fn, view = self._call
        return LossOutput.of(loss_fn(view, batch))

    def _in_parts(self) -> LossOutput:
        """Forward and backward of all parts: as many as it takes."""
        samples, leaves = self._samples, self._owner.leaves
        before = [leaf.grad for leaf in leaves]
        parts = self._owner.parts.get(samples) or min(2, samples)
        while True:
            _clear(leaves)
            try:
                output = self._summed(leaves, parts)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
            else:
                break
            if parts >= samples:
                raise DeviceError(
                    "out of memory with one sample at a time, beside the model, its gradients and "
                    "the optimizer's state: make the model or the samples smaller, or write "
                    "recompute=1"
                )
            _clear(leaves)
            _free()
            parts = min(2 * parts, samples)
        self._gradients = [leaf.grad for leaf in leaves]
        for leaf, gradient in zip(leaves, before, strict=True):
            leaf.grad = gradient
        if samples > 1:
            self._owner.remember(samples, parts)
        return output

    def _summed(self, leaves: Sequence[Tensor], parts: int) -> LossOutput:
        """The mean of the parts' losses, with its gradient in `leaves`."""
        scale = self._step.precision.scale()  # or small fp16 gradients would be lost on the way
        sums = _PartSums(parts)
        for batch, samples in split(self._batch, self._samples, parts):
            with torch.enable_grad(), self._step.precision.autocast():
                output = self._output(batch)
            count = sums.add(output, samples)
            if not output.loss.requires_grad:
                return output
            weight = torch.full_like(output.loss, count / (sums.reference or 1.0))
            with self.no_autocast(), self._owner.backward(count == 0):
                torch.autograd.backward(output.loss, weight if scale is None else weight * scale)
            if self._step.on_outputs is not None:
                sums.outputs.append(detached((output.outputs, output.targets)))
            del output
        factor = sums.reference / sums.total if sums.total else 1.0
        found = [leaf.grad for leaf in leaves if leaf.grad is not None]
        for gradient in found:
            gradient.mul_(factor if scale is None else factor / scale.to(gradient.device))
        return sums.whole()

    def no_autocast(self) -> Any:
        """A backward computes in the types of its forward."""
        return torch.autocast(self._step.device.type, enabled=False)


class _PartSums:
    """The parts of a batch joined again."""

    def __init__(self, parts: int) -> None:
        self.total = self.reference = 0.0
        self._number = parts
        self.outputs: list[Any] = []
        self._counted = False
        self._loss: Number = 0.0
        self._parts: dict[str, tuple[Number, float]] = {}

    def add(self, output: LossOutput, samples: int) -> float:
        """Take in a part; what its mean is over."""
        count = float(resolve_count(output.count, samples))
        self._counted |= output.count is not None
        self.total += count
        # About the total, which is not known yet: so no part's gradient is larger than the whole's.
        self.reference = self.reference or self._number * count
        self._loss = self._loss + times(output.loss.detach(), count)
        for name, part in output.parts.items():
            sum_of, over = self._parts.get(name, (0.0, 0.0))
            self._parts[name] = (
                sum_of + times(torch.as_tensor(part).detach(), count),
                over + count,
            )
        return count

    def whole(self) -> LossOutput:
        """The output of the batch; its loss is a leaf in place of a graph."""
        assert isinstance(self._loss, Tensor)
        outputs, targets = (None, None) if not self.outputs else _joined(self.outputs)
        return LossOutput(
            (self._loss / self.total).requires_grad_(),
            self.total if self._counted else None,
            outputs,
            targets,
            {name: sum_of / over for name, (sum_of, over) in self._parts.items()},
        )


class _Deferred(torch.autograd.Function):
    """A loss whose backward is what `work` makes of it."""

    @staticmethod
    def forward(ctx: Any, loss: Tensor, work: _SplitBatch) -> Tensor:
        ctx.work = work
        return loss.view_as(loss)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None]:
        work, ctx.work = ctx.work, None
        work.backward(gradients[0])
        return None, None


def split(batch: Any, samples: int, parts: int) -> Iterator[tuple[Any, int]]:
    """The batch's parts, as even as can be, each with its number of samples."""
    for k in range(parts):
        start, stop = samples * k // parts, samples * (k + 1) // parts
        yield _cut(batch, start, stop, samples), stop - start


def _cut(value: Any, start: int, stop: int, samples: int) -> Any:
    if isinstance(value, Tensor):
        if value.ndim and value.shape[0] != samples:
            raise _cannot(f"a tensor of shape {tuple(value.shape)} beside {samples:,} samples")
        return value[start:stop] if value.ndim else value
    if isinstance(value, _SINGLE):
        return value
    if isinstance(value, Mapping):
        cut = {name: _cut(part, start, stop, samples) for name, part in value.items()}
        if isinstance(value, dict):
            return cut
        other: Any = copy.copy(value)
        other.update(cut)
        return other
    if isinstance(value, list) and len(value) == samples and _is_single(value):
        return value[start:stop]
    if isinstance(value, (tuple, list)):
        parts = [_cut(part, start, stop, samples) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    raise _cannot(f"{_options.kind_of(value)} in it")


def _is_single(values: Sequence[Any]) -> bool:
    return all(isinstance(value, _SINGLE) for value in values)


def _cannot(why: str) -> DeviceError:
    return DeviceError(
        f"out of memory, and the batch cannot be split by samples ({why}): lower the batch size"
    )


def _joined(outputs: Sequence[Any]) -> Any:
    """Outputs of the parts, one after the other."""

    def join(*parts: Any) -> Any:
        is_rows = isinstance(parts[0], Tensor) and parts[0].ndim
        return torch.cat(parts) if is_rows else parts[0]

    return tree_map(join, *outputs)


def _clear(leaves: Sequence[Tensor]) -> None:
    for leaf in leaves:
        leaf.grad = None


def _add(leaves: Sequence[Tensor], before: Sequence[Tensor | None]) -> None:
    """Add what was there before a backward to what it has left, as it would have done itself."""
    for leaf, old in zip(leaves, before, strict=True):
        if old is None:
            continue
        new, leaf.grad = leaf.grad, old
        if new is not None:
            leaf.grad = old + new if old.is_sparse or new.is_sparse else old.add_(new)


def _free() -> None:
    """Give back what the failed attempt has left."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
