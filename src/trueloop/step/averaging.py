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
    name = type(average).__name__
    if modes.any:
        raise ConfigError(
            f"average={name}(...) and a schedule-free optimizer, whose weights in eval mode are an "
            "average already: leave out average"
        )
    if sharding.fsdp_modules(model):
        raise ConfigError(
            f"average={name}(...) copies the whole model, and fsdp has it in shards: write "
            "parallel='ddp', or leave out average"
        )
    return AveragedWeights(model, average)


class AveragedWeights(Modes):
    """The average of a model's weights, as the weights of eval mode (see `Modes`)."""

    any = True

    def __init__(self, model: nn.Module, average: EMA | SWA) -> None:
        self._model = model
        self.average = average
        self.name = type(average).__name__
        is_ema = isinstance(average, EMA)
        try:
            self._averaged = AveragedModel(
                model,
                multi_avg_fn=self._toward if is_ema else None,
                use_buffers=isinstance(average, EMA) and average.use_buffers,
            )
        except Exception as error:  # of a module that cannot be copied
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:120]
            raise ConfigError(
                f"average={self.name}(...) needs a copy of the model, which copy.deepcopy cannot "
                f"make ({reason}): make the step before the model's first forward, or leave out "
                "average"
            ) from error
        self._averaged.requires_grad_(False)
        self.module: nn.Module = self._averaged.module
        self.count = 0
        """Updates in the average."""
        self.needs_bn = False
        """Batch norm has no statistics of the average as it is now."""
        self._clock: tuple[int, int] | None = (0, 1) if is_ema else None
        """The update from which on, and the number of updates after which, weights are taken in."""
        self._kept_average: list[tuple[Tensor, Tensor, int]] | None = None

    def _toward(self, averaged: Any, current: Any, _: Any) -> None:
        assert isinstance(self.average, EMA)
        toward: Any = get_ema_multi_avg_fn  # which torch has not typed
        toward(self.average.decay_at(self.count))(averaged, current, None)

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
        self._averaged.update_parameters(self._model)
        if self._averaged.use_buffers:
            self._copy_constants()
        self.count += 1
        self.needs_bn = self.updates_bn

    @property
    def updates_bn(self) -> bool:
        """Whether batch norm's statistics are computed, and not averaged: if there are any."""
        return isinstance(self.average, SWA) and bool(batch_norm.norms_of(self._model))

    @torch.no_grad()
    def _copy_constants(self) -> None:
        """Buffers that have no average: integers, and masks of infinities."""
        for mine, live in zip(self.module.buffers(), self._model.buffers(), strict=True):
            if not mine.is_floating_point():
                mine.copy_(live)
            else:
                mine.copy_(torch.where(live.isfinite(), mine, live))

    @property
    def _pairs(self) -> list[tuple[Tensor, Tensor]]:
        """Each tensor of the model, and of the average."""
        live = (*self._model.parameters(), *self._model.buffers())
        mine = (*self.module.parameters(), *self.module.buffers())
        return list(zip(live, mine, strict=True))

    @property
    def is_eval(self) -> bool:
        return self._kept_average is not None

    def train(self) -> None:
        """The model's own weights again, unless somebody has changed them since `eval`."""
        kept, self._kept_average = self._kept_average, None
        if kept is None:
            return
        parameters = {id(p) for p in self._model.parameters()}
        changed = {id(t) for t, _, v in kept if t._version != v and id(t) in parameters}
        with torch.no_grad():
            for tensor, value, _ in kept:
                # Buffers are written in an evaluation too (by all ranks, that of rank 0).
                if id(tensor) not in changed and (not changed or id(tensor) in parameters):
                    tensor.copy_(value)

    def eval(self) -> None:
        """The average in the model, until `train`; nothing before the first one."""
        if self.is_eval or not self.count:
            return
        kept = []
        with torch.no_grad():
            for live, mine in self._pairs:
                value = live.detach().clone()
                live.copy_(mine)
                kept.append((live, value, live._version))
        self._kept_average = kept

    def update_bn(self, loss_fn: LossFn, precision: Precision, batches: Iterable[Any]) -> None:
        """Compute batch norm's statistics of the average, from `batches`."""
        with self.evaluating():
            batch_norm.update_bn(self._model, loss_fn, precision, batches)
            with torch.no_grad():
                for live, mine in zip(self._model.buffers(), self.module.buffers(), strict=True):
                    mine.copy_(live)
        self.needs_bn = False

    def weights(self, model: nn.Module) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """With the model's own weights in it: its state dict with the averages, and its own
        parameters and buffers by name; the latter empty before the first average."""
        state = model.state_dict()
        if not self.count:
            return state, {}
        averaged = self.module.state_dict()
        live = {
            name: tensor.detach()
            for name, tensor in (*model.named_parameters(), *model.named_buffers())
            if name in state
        }
        names = {
            name
            for named in (model.named_parameters, model.named_buffers)
            for name, _ in named(remove_duplicate=False)
        }
        for name in names & state.keys():
            state[name] = averaged[name]
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
        loading.load_model(self.module, model)

    def keep(self) -> Callable[[], None]:
        """Remember the average; returns what puts it back."""
        state, put_back = self.state_dict(), loading.keep_model(self.module)
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
