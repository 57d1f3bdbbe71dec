"""Averages of the weights over a run: EMA and SWA, by torch's `AveragedModel`.

Between updates the model has its own weights. Within `Step.evaluating()`, and at the end of `fit`,
it has the averaged ones, which a state and a checkpoint contain as `model` too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from trueloop import _options
from trueloop.errors import ConfigError
from trueloop.shapes import COUNT, OneOf, Shape, TupleOf
from trueloop.step import batch_norm, loading, sharding
from trueloop.step.modes import Modes
from trueloop.step.parallel import LossFn
from trueloop.step.precision import Precision
from trueloop.step.schedule import Length, Plan, check_length, parse_length


@dataclass(frozen=True)
class EMA:
    """An exponential moving average of the weights: the model that is evaluated, saved and used.

    After each applied update (not after a skipped one), average ← decay · average + (1 - decay) ·
    weights; it begins as the weights after the first update. Polyak and Juditsky, "Acceleration of
    stochastic approximation by averaging", SIAM J. Control Optim. 1992, in the form of torch's
    `get_ema_multi_avg_fn`.

    Attributes:
        decay: from 0 to below 1. The average is over some 1 / (1 - decay) updates.
        warmup: the n-th average uses at most the decay (1 + n) / (10 + n), so that a short run does
            not stay near its first weights: `num_updates` of TensorFlow's
            `tf.train.ExponentialMovingAverage`.
        use_buffers: average the floating-point buffers too (running statistics of batch norm);
            False copies them from the model in training. Others are always copied.

    Raises:
        ConfigError: a value that cannot work.
    """

    decay: float = 0.999
    _: KW_ONLY
    warmup: bool = False
    use_buffers: bool = True

    def __post_init__(self) -> None:
        _options.share("decay", self.decay, below_one=True, example="0.999")
        _options.flag("warmup", self.warmup)
        _options.flag("use_buffers", self.use_buffers)

    def decay_at(self, n: int) -> float:
        """The decay of an average.

        Args:
            n: how many updates are in the average already.

        Returns:
            From 0 to below 1.
        """
        return min(self.decay, (1 + n) / (10 + n)) if self.warmup else self.decay


@dataclass(frozen=True)
class SWA:
    """Stochastic weight averaging: the mean of the weights at intervals late in the run.

    Izmailov, Podoprikhin, Garipov, Vetrov and Wilson, "Averaging weights leads to wider optima and
    better generalization", UAI 2018. It needs a learning rate that stays up while it averages:
    constant, or torch's `SWALR`. Before `start` an evaluation uses the weights in training.

    Batch norm has no statistics of such weights, so `fit` computes them from the training data
    before an evaluation, as torch's `update_bn`; in a loop of your own call `Step.update_bn`.

    Attributes:
        start: where the averaging begins: a share of the run ("75%"), "20 epochs" or "300 updates".
        every: how often the weights are taken in: "1 epoch" or "100 updates". Counted in applied
            updates, from the beginning of the run.

    Raises:
        ConfigError: a value that cannot work.
    """

    start: Length = "75%"
    every: Length = "1 epoch"

    def __post_init__(self) -> None:
        check_length("start", self.start, zero=True)
        check_length("every", self.every)
        if parse_length(self.every)[1] == "share":
            raise ConfigError(
                f"every={self.every!r} is a share of the run: write every='1 epoch' or "
                "'100 updates'"
            )


STATE: Shape = {
    "kind": str,
    "count": COUNT,
    "clock": OneOf(None, TupleOf(COUNT, COUNT)),
    "needs_bn": bool,
}
"""Of `AveragedWeights`, beside the weights."""


def modes_of(average: Any, model: nn.Module, optimizers: Sequence[Optimizer]) -> Modes:
    """The weights of the model in training and in an evaluation."""
    modes = Modes(optimizers)
    if average is None:
        return modes
    if not isinstance(average, (EMA, SWA)):
        raise ConfigError(
            f"average={_options.shown(average)} is not a way to average the weights: write "
            "average=EMA(0.999) or average=SWA()"
        )
    if modes.any:
        raise ConfigError(
            f"average={type(average).__name__}(...) and a schedule-free optimizer, whose weights "
            "in eval mode are an average already: leave out average"
        )
    return AveragedWeights(model, average)


class _Weights(nn.Module):
    """The parameters and buffers of a model, in the same memory and without its modules: what an
    `AveragedModel` copies. Of a sharded model this rank's part of each, since an average goes
    element by element."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        sharding.reshard(model)
        for k, tensor in enumerate(model.parameters()):
            local = sharding.local(tensor)
            self.register_parameter(f"p{k}", nn.Parameter(local, requires_grad=False))
        for k, buffer in enumerate(model.buffers()):
            self.register_buffer(f"b{k}", buffer.detach())


class AveragedWeights(Modes):
    """The average of a model's weights, as the weights of eval mode (see `Modes`)."""

    any = True

    def __init__(self, model: nn.Module, average: EMA | SWA) -> None:
        self._model = model
        self.average = average
        self.name = type(average).__name__
        self._is_sharded = bool(sharding.fsdp_modules(model))
        self._averaged = AveragedModel(
            _Weights(model), use_buffers=isinstance(average, EMA) and average.use_buffers
        )
        self.count = 0
        """Updates in the average."""
        self.needs_bn = False
        """Batch norm has no statistics of the average as it is now."""
        self._clock: tuple[int, int] | None = (0, 1) if isinstance(average, EMA) else None
        """The update from which on, and the number of updates after which, weights are taken in."""
        self._kept_average: list[tuple[Tensor, Tensor, int]] | None = None
        """In eval mode: each tensor of the model, its value in train mode, its version now."""

    def plan(self, plan: Plan | None) -> None:
        """Take the length of the run, which SWA's `start` and `every` may need."""
        if isinstance(self.average, SWA) and not self.count:
            start = _updates("start", self.average.start, plan)
            self._clock = start, max(1, _updates("every", self.average.every, plan))

    def update(self, updates: int) -> None:
        """After the update that is the `updates`-th of the run: take in the weights, if due."""
        if self._clock is None:
            self.plan(None)
        assert self._clock is not None
        start, every = self._clock
        if updates < start or updates % every:
            return
        live = _Weights(self._model) if self._is_sharded else self._model
        if isinstance(self.average, EMA) and self.count:
            self._move_toward(live, self.average.decay_at(self.count))
        else:
            self._averaged.update_parameters(live)
        if self._averaged.use_buffers:
            self._copy_constants()
        self.count += 1
        self.needs_bn = self.updates_bn

    @torch.no_grad()
    def _move_toward(self, live: nn.Module, decay: float) -> None:
        """As `AveragedModel.update_parameters`, which copies its count to the device first: in each
        update it would wait for the device."""
        pairs: list[tuple[Tensor, Tensor]] = [
            *zip(self._averaged.module.parameters(), live.parameters(), strict=True)
        ]
        buffers = [*zip(self._buffers(), live.buffers(), strict=True)]
        if self._averaged.use_buffers:
            pairs += buffers
        else:
            for mine, other in buffers:
                mine.copy_(other)
        groups: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
        for mine, other in pairs:
            if mine.is_floating_point() or mine.is_complex():
                averages, weights = groups.setdefault((mine.device, mine.dtype), ([], []))
                averages.append(mine)
                weights.append(other.detach().to(mine.device))
        toward: Any = get_ema_multi_avg_fn  # which torch has not typed
        for averages, weights in groups.values():
            toward(decay)(averages, weights, None)

    @property
    def updates_bn(self) -> bool:
        """Whether batch norm's statistics are computed, and not averaged: if there are any."""
        return isinstance(self.average, SWA) and bool(batch_norm.norms_of(self._model))

    @torch.no_grad()
    def _copy_constants(self) -> None:
        """Buffers that have no average: integers, and masks of infinities."""
        for mine, live in zip(self._buffers(), self._model.buffers(), strict=True):
            if not mine.is_floating_point():
                mine.copy_(live)
            else:
                mine.copy_(torch.where(live.isfinite(), mine, live))

    def _buffers(self) -> list[Tensor]:
        return list(self._averaged.module.buffers())

    def _pairs(self) -> list[tuple[Tensor, Tensor]]:
        """Each parameter and buffer of the model, and its average."""
        if self._is_sharded:
            sharding.reshard(
                self._model
            )  # else it has whole parameters, which are soon out of date
        live = (*self._model.parameters(), *self._model.buffers())
        mine = (*self._averaged.module.parameters(), *self._buffers())
        return list(zip(live, mine, strict=True))

    def _share_buffers(self) -> None:
        """Of a sharded model each rank has seen its own part of the data: rank 0's are used."""
        if self._is_sharded:
            sharding.sync_buffers(self._averaged.module)

    @property
    def is_eval(self) -> bool:
        return self._kept_average is not None

    def train(self) -> None:
        """The model's own weights again, unless somebody has changed them since `eval`."""
        kept, self._kept_average = self._kept_average, None
        if kept is None:
            return
        is_buffer = {id(b) for b in self._model.buffers()}
        changed = {id(t) for t, _, v in kept if t._version != v and id(t) not in is_buffer}
        with torch.no_grad():
            for tensor, value, _ in kept:
                # Buffers are written in an evaluation too (by all ranks, that of rank 0).
                if id(tensor) not in changed and not (changed and id(tensor) in is_buffer):
                    tensor.copy_(value)
        if self._is_sharded:
            sharding.reshard(self._model)

    def eval(self) -> None:
        """The average in the model, until `train`; nothing before the first one."""
        if self.is_eval or not self.count:
            return
        self._share_buffers()
        kept = []
        with torch.no_grad():
            for tensor, mine in self._pairs():
                live = sharding.local(tensor)
                value = live.detach().clone()
                live.copy_(mine)
                kept.append((live, value, live._version))
        self._kept_average = kept

    def update_bn(self, loss_fn: LossFn, precision: Precision, batches: Iterable[Any]) -> None:
        """Compute batch norm's statistics of the average, from `batches`."""
        with self.evaluating():
            batch_norm.update_bn(self._model, loss_fn, precision, batches)
            with torch.no_grad():
                for live, mine in zip(self._model.buffers(), self._buffers(), strict=True):
                    mine.copy_(live)
        self.needs_bn = False

    def weights(self, model: nn.Module) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """With the model's own weights in it: its state dict with the averages, and its own
        parameters and buffers by name; the latter empty before the first average."""
        state = model.state_dict()
        if not self.count:
            return state, {}
        self._share_buffers()
        averages = {id(tensor): mine for tensor, mine in self._pairs()}
        live = {}
        for name, tensor in self._named():
            if name in state:
                state[name] = sharding.like(averages[id(tensor)], tensor)
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            if name in state:
                live[name] = tensor.detach()
        return state, live

    def state_dict(self) -> dict[str, Any]:
        clock = None if self._clock is None else list(self._clock)
        return {
            "kind": repr(self.average),
            "count": self.count,
            "clock": clock,
            "needs_bn": self.needs_bn,
        }

    def load_state_dict(self, state: Mapping[str, Any], model: Mapping[str, Any]) -> None:
        """Take up what `state_dict` returned, with the averages of the saved `model`."""
        self.count, self.needs_bn = state["count"], state["needs_bn"]
        self._averaged.n_averaged.fill_(self.count)
        if not self.count:
            return  # a plan may have set the clock: of the run as it is now
        self._clock = tuple(state["clock"])
        averages = {id(tensor): mine for tensor, mine in self._pairs()}
        with torch.no_grad():
            for name, tensor in self._named():
                if name in model:
                    saved = sharding.local(sharding.placed(model[name], tensor))
                    averages[id(tensor)].copy_(saved)

    def _named(self) -> list[tuple[str, Tensor]]:
        """The parameters and buffers of the model by all of their names."""
        found = (self._model.named_parameters, self._model.named_buffers)
        return [pair for named in found for pair in named(remove_duplicate=False)]

    def keep(self) -> Callable[[], None]:
        """Remember the average; returns what puts it back."""
        state, put_back = self.state_dict(), loading.keep_model(self._averaged.module)
        clock = self._clock

        def undo() -> None:
            put_back()
            self.count, self.needs_bn, self._clock = state["count"], state["needs_bn"], clock
            self._averaged.n_averaged.fill_(self.count)

        return undo


def _updates(option: str, length: Length, plan: Plan | None) -> int:
    """A length of `SWA` in updates; `ConfigError` where the run's own is not known."""
    amount, unit = parse_length(length)
    if unit in ("ticks", "updates"):
        return int(amount)
    whole = None
    if plan is not None:
        whole = plan.ticks("update") if unit == "share" else plan.updates_per_epoch
    if whole is None:
        raise ConfigError(
            f"SWA's {option} is {length!r}, and how many updates that is is not known: call "
            "step.plan(epochs=..., batches=len(train)) before the first batch, or write "
            f"{option}='300 updates'"
        )
    return round(amount * whole)
