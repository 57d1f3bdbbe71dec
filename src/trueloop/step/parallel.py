"""How the model is shared by many ranks, as one object: a base for one process, and a class each
for DDP and FSDP (`sharding`).

A strategy owns the collectives of the gradient: they run in the backward of a window's last
micro-batch, and in no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from trueloop import _options, ranks
from trueloop.errors import ConfigError
from trueloop.records import LossOutput

LossFn = Callable[[nn.Module, Any], Any]

_NOTHING: AbstractContextManager[Any] = nullcontext()

_LISTED = 3
"""Parameters that a message lists by name."""


@dataclass(frozen=True, kw_only=True)
class DDPOptions:
    """How `Step(..., parallel=DDPOptions(...))` uses torch's `DistributedDataParallel`.

    Attributes:
        find_unused_parameters: some parameters get no gradient in some updates: a head or an expert
            that a batch does not use. DDP then walks the graph after each forward, which takes
            time.
        broadcast_buffers: rank 0's buffers (the running statistics of batch norm) replace the
            others' before each update. Without it each rank trains with its own.
        bucket_mb: gradients travel in buckets of about this size in MiB: larger ones have less
            overhead, smaller ones begin earlier in the backward.
    """

    find_unused_parameters: bool = False
    broadcast_buffers: bool = True
    bucket_mb: float = 25.0

    def __post_init__(self) -> None:
        _options.flag("find_unused_parameters", self.find_unused_parameters)
        _options.flag("broadcast_buffers", self.broadcast_buffers)
        _options.positive("bucket_mb", self.bucket_mb, "25.0")


class Parallel:
    """One process, and the base of the strategies of many ranks."""

    name: ClassVar[str | None] = None

    def __init__(self, model: nn.Module, view: nn.Module | None = None) -> None:
        self.model = model
        """The bare module."""
        self.view = model if view is None else view
        """The model for `loss_fn`, before `torch.compile`."""

    @property
    def device(self) -> torch.device | None:
        """Where the forward and the backward run; None: where the parameters are."""
        return None

    def refresh(self, parameters: Sequence[nn.Parameter]) -> None:
        """Before a window's first forward: take in what has changed of the optimizer's
        parameters."""

    def loss(self, loss_fn: LossFn, view: nn.Module, batch: Any) -> LossOutput:
        """The result of `loss_fn(view, batch)`."""
        return LossOutput.of(loss_fn(view, batch))

    def synchronising(self, last: bool) -> AbstractContextManager[Any]:
        """The context of a micro-batch's forward and backward: ranks exchange gradients in that of
        a window's `last` one."""
        return _NOTHING

    def backward(self, weightless: bool) -> AbstractContextManager[Any]:
        """The context of a backward. That of a micro-batch that counts for nothing adds exactly
        nothing to any gradient, though its loss may be NaN."""
        return without_gradient(self._leaves()) if weightless else _NOTHING

    def _leaves(self) -> Iterable[Tensor]:
        """The parameters that the backward gives gradients to."""
        return self.model.parameters()

    def check_synchronised(self) -> None:
        """After the last backward: `ConfigError` if this rank has gradients that were not
        averaged."""

    def synchronise(self, parameters: Sequence[nn.Parameter]) -> None:
        """Average, over the ranks, the gradients of a window that no last micro-batch closed."""

    def stash(self) -> None:
        """Between the micro-batches of a window: take the gradients beside `.grad` out of the reach
        of any other backward."""

    def restore(self) -> None:
        """Put back what `stash` took."""

    def discard(self) -> None:
        """Forget the gradients of a window that is given up."""

    def explain(self, error: BaseException) -> None:
        """Raise a `ConfigError` if the optimizer's error is this strategy's to explain."""


class DDP(Parallel):
    """Each rank has the whole model; torch's `DistributedDataParallel` averages the gradients.

    Its forward is the whole of `loss_fn`, so that a loss may call the model in any way: several
    times, by a different method, or without the argument.
    """

    name = "ddp"

    def __init__(
        self, model: nn.Module, optimizers: Sequence[Optimizer], options: DDPOptions
    ) -> None:
        super().__init__(model)
        self._options = options
        self._parameters = [p for optimizer in optimizers for p in parameters_of(optimizer)]
        self._build()

    def _build(self) -> None:
        inside = {id(p) for p in self.model.parameters()}
        outside = [p for p in self._parameters if id(p) not in inside]
        self._outputs = _LossModule(self.model, outside)
        self._all = list(self._outputs.parameters())
        self._built_for = self._trained()
        if not any(p.requires_grad for p in self._all):
            raise ConfigError(
                "every parameter of the model is frozen, so there is nothing to train: set "
                "requires_grad_(True) on some"
            )
        # torch 2.13 warns where the argument is given at all.
        buffers: dict[str, Any] = {}
        if not self._options.broadcast_buffers:
            buffers["broadcast_buffers"] = False
        try:
            self._ddp = DistributedDataParallel(
                self._outputs,
                find_unused_parameters=self._options.find_unused_parameters,
                gradient_as_bucket_view=True,  # else each gradient is held twice
                bucket_cap_mb=self._options.bucket_mb,
                **buffers,
            )
        except RuntimeError as error:
            raise ConfigError(
                f"torch's DDP does not take the model ({one_line(error)}): build the same model "
                "with the same layers on every rank"
            ) from error

    def _trained(self) -> list[Any]:
        """The parameters that DDP's hooks serve: those that were trained when it was made, on the
        device and with the dtype that they had."""
        first = self._all[0]
        return [first.dtype, first.device, *(p.requires_grad for p in self._all)]

    def refresh(self, parameters: Sequence[nn.Parameter]) -> None:
        changed = len(parameters) != len(self._parameters) or any(
            a is not b for a, b in zip(parameters, self._parameters, strict=True)
        )
        if changed or self._trained() != self._built_for:
            self._parameters = list(parameters)
            self._build()

    def loss(self, loss_fn: LossFn, view: nn.Module, batch: Any) -> LossOutput:
        self._ddp(loss_fn, view, batch)
        output, self._outputs.returned = self._outputs.returned, None
        assert output is not None
        return output

    def synchronising(self, last: bool) -> AbstractContextManager[Any]:
        return _NOTHING if last else self._ddp.no_sync()

    def _leaves(self) -> Iterable[Tensor]:
        return self._all

    def check_synchronised(self) -> None:
        _check_reduced(self._ddp, self._outputs)

    def synchronise(self, parameters: Sequence[nn.Parameter]) -> None:
        average_gradients(parameters)


class OwnDDP(Parallel):
    """A model that the user has wrapped in `DistributedDataParallel`, which `loss_fn` gets."""

    name = "ddp"

    def __init__(self, wrapper: nn.Module, ddp: DistributedDataParallel) -> None:
        super().__init__(ddp.module, wrapper)
        self._ddp = ddp
        self._inside = {id(p) for p in ddp.parameters()}
        self._outside: list[nn.Parameter] = []

    def refresh(self, parameters: Sequence[nn.Parameter]) -> None:
        self._outside = [p for p in parameters if id(p) not in self._inside]

    def synchronising(self, last: bool) -> AbstractContextManager[Any]:
        return _NOTHING if last else self._ddp.no_sync()

    def _leaves(self) -> Iterable[Tensor]:
        return [*self.model.parameters(), *self._outside]

    def check_synchronised(self) -> None:
        if ranks.is_distributed():
            _check_reduced(self._ddp, self.model)
            average_gradients(self._outside)

    def synchronise(self, parameters: Sequence[nn.Parameter]) -> None:
        average_gradients(parameters)


class _LossModule(nn.Module):
    """The whole of a loss as one module."""

    def __init__(self, model: nn.Module, outside: Sequence[nn.Parameter]) -> None:
        super().__init__()
        self.model = model
        self.outside = nn.ParameterList(outside)
        """The parameters that the optimizer has beside the model's."""
        self.returned: LossOutput | None = None

    def forward(self, loss_fn: LossFn, view: nn.Module, batch: Any) -> Tensor:
        # DDP sees the loss alone: what hangs on the outputs beside it gets no gradient.
        self.returned = output = LossOutput.of(loss_fn(view, batch))
        return output.loss


def wrapped(model: nn.Module) -> DistributedDataParallel | None:
    """The user's own DDP around a model, also within `torch.compile`."""
    inner = getattr(model, "_orig_mod", model)
    return inner if isinstance(inner, DistributedDataParallel) else None


def parameters_of(optimizer: Optimizer) -> list[nn.Parameter]:
    """The optimizer's parameters, in its own order."""
    return [p for group in optimizer.param_groups for p in group["params"]]


@contextmanager
def without_gradient(leaves: Iterable[Tensor]) -> Iterator[None]:
    """Within it, each gradient that reaches one of `leaves` is replaced by zeros."""
    trained = [leaf for leaf in leaves if leaf.requires_grad]
    hooks = [leaf.register_hook(torch.zeros_like) for leaf in trained]  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _check_reduced(ddp: DistributedDataParallel, module: nn.Module) -> None:
    """DDP waits for a gradient of every parameter, and reports a missing one only at the next
    forward: this update would be made of gradients that were not averaged."""
    try:
        ddp._check_reducer_finalized()  # type: ignore[no-untyped-call]
    except RuntimeError:
        prefix = "" if module is ddp.module and not isinstance(module, _LossModule) else "model."
        unused = [
            name.removeprefix(prefix)
            for name, p in module.named_parameters()
            if p.requires_grad and p.grad is None
        ]
        raise ConfigError(
            f"the loss of this batch does not depend on {listed(unused) or 'some parameters'} "
            f"(rank {ranks.rank()}), and DDP waits for a gradient of each: write "
            "parallel=DDPOptions(find_unused_parameters=True), or freeze what is never used with "
            "requires_grad_(False)"
        ) from None


def average_gradients(parameters: Sequence[nn.Parameter]) -> None:
    """The mean over the ranks of each parameter's gradient, in place; that of a rank without one
    counts as 0. All ranks must call it together."""
    trained = [p for p in parameters if p.requires_grad]
    if not trained or not ranks.is_distributed():
        return
    has = torch.tensor([float(p.grad is not None) for p in trained], dtype=torch.float64)
    counts = ranks.reduced(has.to(trained[0].device), "sum", "which gradients there are").tolist()
    for parameter, count in zip(trained, counts, strict=True):
        if not count:
            continue
        gradient = parameter.grad
        if gradient is None:
            gradient = torch.zeros_like(parameter)
        gradient = gradient.detach().coalesce() if gradient.is_sparse else gradient.detach()
        with ranks.waiting("the gradients of all ranks"):
            dist.all_reduce(gradient)
        parameter.grad = gradient / ranks.world_size()


def listed(names: Sequence[str]) -> str:
    """The first few of some names, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:_LISTED])
    return shown + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:160]
