"""Step: one optimizer update, every line in the right place."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, ClassVar, NoReturn

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from trueloop import device as devices
from trueloop.errors import ConfigError, LossError, NonFiniteError, RunError
from trueloop.records import LossOutput, StepRecord, batch_samples, position_of
from trueloop.shapes import COUNT, Anything, Either, Row, Shape, Table, problem
from trueloop.step import clip, loading, precision as precisions
from trueloop.step.accumulate import Window
from trueloop.step.capture import compiled
from trueloop.step.schedule import Clock, Plan, Schedule, Scores

LossFn = Callable[[nn.Module, Any], Any]

# Layers that behave differently in eval mode, so that training there is surely a mistake.
_MODAL = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)


_NO_GRAPH = (
    "the loss does not depend on the model's parameters, so nothing can be trained by it: compute "
    "it from model(inputs), without .detach(), .item() or torch.no_grad()"
)


class Step:
    """One optimizer update per call, or one micro-batch of it.

    `loss_fn(model, batch)` returns the batch's mean loss, `(loss, count)` where the mean is over
    something else than samples (tokens), or a `LossOutput`. `optimizer` is any torch optimizer.

    - `schedule`: one of `trueloop.schedules`; it ticks only when the optimizer really stepped.
    - `precision`: `fp32`, `bf16` (autocast) or `fp16` (autocast and loss scaling).
    - `accumulate`: micro-batches per update. The gradient is that of their union, ragged and short
      windows included. A window ends early with the epoch: at the last batch of a `Feed`; for
      other sources at `flush()` or `end_epoch()`.
    - `clip_norm`: largest global L2 norm of the gradient; `clip_value`: largest absolute entry.
    - `nonfinite`: `stop` raises `NonFiniteError` at a NaN or infinite gradient; `skip` leaves that
      update out and counts it in `skipped`. Under fp16 the scaler's own skips are no error. On
      CUDA, `stop` learns of it without a wait, one or a few updates late; `skip` waits for it.
    - `compile`: None, True, a mode or a dict of options of `torch.compile`.

    `Step` draws no random numbers and never changes a module's mode. With the same batches and
    seeds the weights are bitwise those of the loop written by hand. Two optimizers (a GAN) are two
    steps: neither takes in what the other's backward leaves on its parameters, also between the
    micro-batches of a window (whose gradients it keeps, so that `.grad` is None there). After an
    error the window at hand is given up, and the next call starts a new one.

    Raises `ConfigError` for options that cannot work, `LossError` when `loss_fn` returns no scalar
    with a graph, `NonFiniteError` as above.
    """

    STATE: ClassVar[Shape] = {
        "optimizer": loading.OPTIMIZER,
        "precision": Table(str, float),
        "schedule": Either(None, Table(str, Anything)),
        "window": Window.STATE,
        "gradients": loading.GRADIENTS,
        "counters": Row(COUNT, COUNT, COUNT, COUNT),
        "options": {"precision": str, "accumulate": int, "schedule": Either(None, str)},
    }
    """What `load_state_dict` takes, beside the `model`."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        loss_fn: LossFn,
        *,
        schedule: Schedule | None = None,
        precision: str = "fp32",
        accumulate: int = 1,
        clip_norm: float | None = None,
        clip_value: float | None = None,
        nonfinite: str = "stop",
        compile: bool | str | dict[str, Any] | None = None,
    ) -> None:
        clip.check_limits(clip_norm, clip_value)
        if nonfinite not in ("stop", "skip"):
            raise ConfigError(f"nonfinite={nonfinite!r} is unknown: write 'stop' or 'skip'")
        _check_pair(model, optimizer)
        self.model = model
        self.optimizer = optimizer
        self.loss_fn = loss_fn
        self.clip_norm = clip_norm
        self.clip_value = clip_value
        self.nonfinite = nonfinite
        self.epoch = 0
        """Epochs ended."""
        self.batch = 0
        """Micro-batches taken in the current epoch."""
        self.updates = 0
        """Updates applied."""
        self.skipped = 0
        """Updates left out because their gradient was not finite."""
        self._collect_parameters()
        self.device = self._parameters[0].device
        self.precision = precisions.by_name(precision, self.device)
        self._window = Window(accumulate)
        self._laid_aside: list[Tensor | None] = []
        self._forward = compiled(model, compile)
        self._schedule = schedule
        self._clock: Clock | None = None
        self._plan: Plan | None = None
        self._verdicts = clip.Verdicts()

    def __call__(self, batch: Any) -> StepRecord:
        """Take one batch; returns its `StepRecord`, whose tensors stay on the device."""
        # 1. Window: which micro-batch of which update; a new window starts from no gradient.
        window, position = self._window, position_of(batch)
        if not window.is_open:
            self._open()
        if position is not None:
            self.epoch, self.batch = position.epoch, position.batch
        here = self.batch
        self.batch += 1

        # 2. Forward and loss, under autocast.
        with self.precision.autocast():
            output = LossOutput.of(self.loss_fn(self._forward, batch))
        if not output.loss.requires_grad:
            raise LossError(_NO_GRAPH)

        # 3. Backward: gradients add up over the window.
        try:
            loss = window.weigh(output.loss, output.count, self._samples(batch))
            self._take_up_gradients()
            self.precision.backward(loss)
        except BaseException:
            self._end_window()  # half a gradient must not reach an update
            raise
        if window.is_full or (position is not None and position.last):
            return self._update(here)
        self._lay_gradients_aside()
        return StepRecord(
            self.epoch,
            here,
            self.updates,
            window.mean_loss(),
            None,
            self._lr(),
            window.samples,
            False,
        )

    def _update(self, batch: int) -> StepRecord:
        """Close the window: everything between the last backward and the next batch."""
        try:
            # 4. Unscale (fp16): the gradients get their true size.
            self.precision.unscale(self.optimizer)

            # 5. Divide, norm, clip: the window's gradient becomes the union's, touched once.
            names, gradients = self._gradients()
            correction = self._window.correction()
            norms = clip.norms(gradients)
            norm = torch.linalg.vector_norm(norms)
            if not (isinstance(correction, float) and correction == 1.0):
                norm = norm * correction
            clip.divide_and_clip(gradients, norm, correction, self.clip_norm, self.clip_value)

            # 6. Optimizer: unless the gradient is not finite.
            lr = self._lr()
            stepped = self._admit(norm, norms, names, batch) and self.precision.step(self.optimizer)
            loss, samples = self._window.mean_loss(), self._window.samples
        finally:
            # 7. Clear (set to None, so that the next backward writes instead of adding).
            self._end_window()

        # 8. Schedule: ticks only after a real update.
        if stepped:
            self.updates += 1
            if self._clock is not None:
                self._clock.tick_update()
        else:
            self.skipped += 1
        return StepRecord(
            self.epoch, batch, self.updates, loss, norm, lr, samples, stepped, not stepped
        )

    def flush(self) -> StepRecord | None:
        """Apply the update of a window that is still open, short as it is; None if none is."""
        if not self._window.is_open:
            return None
        self._take_up_gradients()
        return self._update(self.batch - 1)

    def end_epoch(self, scores: Scores | None = None) -> None:
        """End the epoch: close an open window, tick the epoch and metric schedules.

        `scores` is what a metric schedule watches: an `EvalRecord`, a dict or one number.
        """
        self.flush()
        self._raise_late_verdict(wait=True)
        if self._clock is not None:
            self._clock.tick_epoch(scores)
        self.epoch += 1
        self.batch = 0

    @property
    def monitor(self) -> str | None:
        """The score that a metric schedule watches; None for any other."""
        return None if self._schedule is None else self._schedule.monitor

    def plan(self, *, epochs: int, batches: int | None) -> Plan:
        """Say how long the run is: `epochs` of `batches` micro-batches each (None: unknown).

        Needed once, before the first batch, by schedules whose length is the run's (`fit` does
        it). Raises `ScheduleError` when the schedule does not end where the run ends.
        """
        per_epoch = None if batches is None else -(-batches // self._window.size)
        self._plan = plan = Plan(epochs, per_epoch)
        self._wind_clock(plan)
        if self._clock is not None:
            self._clock.check(plan)
        return plan

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next call depends on, an open window with its gradients included.

        Plain data and tensors; the tensors are the live ones: copy or save before going on. The
        position within the epoch is in `epoch` and `batch`.
        """
        self._raise_late_verdict(wait=True)
        gradients = {}
        if self._window.is_open:
            held = zip(self._names, self._laid_aside, strict=True)
            gradients = {name: gradient for name, gradient in held if gradient is not None}
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "precision": self.precision.state_dict(),
            "schedule": None if self._clock is None else self._clock.state_dict(),
            "window": self._window.state_dict(),
            "gradients": gradients,
            "counters": [self.epoch, self.batch, self.updates, self.skipped],
            "options": self._options(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what `state_dict` returned; with a planned schedule, call `plan` before.

        Raises `RunError` for the state of a step with other options, model or optimizer,
        `ScheduleError` if its schedule does not end where the planned run ends. The step, its
        model and its optimizer are then as they were.
        """
        self._check_same(state)
        loading.check_model(self.model, state["model"])
        loading.check_gradients(self._names, self._parameters, state["gradients"])
        with ExitStack() as undo:
            undo.callback(self._keep())
            if state["schedule"] is not None:
                # Before the optimizer's state: a scheduler that is built sets the lr to its first.
                self._wind_clock(None)
                assert self._clock is not None
                self._clock.load_state_dict(state["schedule"])
                if self._plan is not None:
                    self._clock.check(self._plan, saved=True)
            loading.load_optimizer(self.optimizer, state["optimizer"])
            self.precision.load_state_dict(state["precision"])
            loading.load_model(self.model, state["model"])
            undo.pop_all()
        self._window.load_state_dict(state["window"], self.device)
        self._clear_gradients()
        found = [state["gradients"].get(name) for name in self._names]
        self._laid_aside = [
            None if gradient is None else gradient.detach().clone().to(p.device)
            for gradient, p in zip(found, self._parameters, strict=True)
        ]
        self.epoch, self.batch, self.updates, self.skipped = state["counters"]

    def _check_same(self, state: dict[str, Any]) -> None:
        """Refuse a state of another configuration: it would be another run."""
        shape = {**self.STATE, "precision": self.precision.STATE, "model": loading.MODEL}
        if found := problem(state, shape, "step"):
            raise RunError(f"{found}: load a state that state_dict of a step like this one gave")
        saved = state["options"]
        for name, value in self._options().items():
            if saved[name] != value:
                raise RunError(
                    f"the checkpoint was written with {name}={saved[name]!r}, this step has "
                    f"{name}={value!r}: build the step as it was"
                )

        if state["window"]["micro_batches"] >= self._window.size:
            raise RunError("step.window holds a whole window: use another checkpoint")
        if state["schedule"] is not None and self._schedule is None:
            raise RunError("step.schedule is there, and this step has none: build it as it was")

    def _keep(self) -> Callable[[], None]:
        """Remember what a load that is refused half-way has changed; returns what puts it back."""
        clock, scaler = self._clock, self.precision.state_dict()
        parts = [loading.keep_optimizer(self.optimizer), loading.keep_model(self.model)]
        if clock is not None:
            parts.append(loading.keep_scheduler(clock.scheduler))

        def put_back() -> None:
            self._clock = clock
            self.precision.load_state_dict(scaler)
            for part in parts:
                part()

        return put_back

    def _options(self) -> dict[str, Any]:
        return {
            "precision": self.precision.name,
            "accumulate": self._window.size,
            "schedule": None if self._schedule is None else self._schedule.name,
        }

    def _open(self) -> None:
        """What must hold before a window's first forward."""
        self._raise_late_verdict()
        if not self.model.training:
            self._refuse_eval_mode()
        if self._clock is None:
            self._wind_clock(None)
        held = [p for group in self.optimizer.param_groups for p in group["params"]]
        if len(held) != len(self._held) or not all(map(operator.is_, held, self._held)):
            self._collect_parameters()
        # Another step's backward (a GAN's other half) may have left gradients here.
        self._clear_gradients()

    def _lay_gradients_aside(self) -> None:
        """Between micro-batches, out of the reach of another step's backward."""
        self._laid_aside = [parameter.grad for parameter in self._parameters]
        self._clear_gradients()

    def _take_up_gradients(self) -> None:
        if self._laid_aside:
            for parameter, gradient in zip(self._parameters, self._laid_aside, strict=True):
                parameter.grad = gradient

    def _end_window(self) -> None:
        self._window.close()
        self._laid_aside = []
        self._clear_gradients()

    def _clear_gradients(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None

    def _refuse_eval_mode(self) -> None:
        modules = list(self.model.modules())
        if any(m.training for m in modules) or not any(isinstance(m, _MODAL) for m in modules):
            return
        raise ConfigError(
            "the model stands in eval mode, and it has dropout or batch norm: "
            "call model.train() before training"
        )

    def _wind_clock(self, plan: Plan | None) -> None:
        if self._schedule is not None and self._clock is None:
            self._clock = Clock(self._schedule, self.optimizer, plan)

    def _collect_parameters(self) -> None:
        """The optimizer's parameters in the model's order, as `clip_grad_norm_` would see them."""
        self._held = [p for group in self.optimizer.param_groups for p in group["params"]]
        held = {id(p) for p in self._held}
        named = [(name, p) for name, p in self.model.named_parameters() if id(p) in held]
        inside = {id(p) for _, p in named}
        others = [p for p in self._held if id(p) not in inside]
        named += [(f"parameter {k} outside the model", p) for k, p in enumerate(others)]
        self._names = [name for name, _ in named]
        self._parameters = [p for _, p in named]

    def _gradients(self) -> tuple[list[str], list[Tensor]]:
        """Names and dense gradients of the parameters that have one."""
        names, gradients = [], []
        for name, parameter in zip(self._names, self._parameters, strict=True):
            gradient = parameter.grad
            if gradient is None:
                continue
            if gradient.is_sparse:
                # Rows that several samples touched are summed first; the values then are a view.
                parameter.grad = gradient.coalesce()
                gradient = parameter.grad.values()
            names.append(name)
            gradients.append(gradient)
        if not gradients:
            raise LossError(_NO_GRAPH)
        return names, gradients

    def _samples(self, batch: Any) -> int:
        samples = batch_samples(batch)
        return 1 if samples is None else samples

    def _lr(self) -> Any:
        lr = self.optimizer.param_groups[0]["lr"]
        if not isinstance(lr, Tensor):
            return lr
        # The schedule writes into it: the record is of now.
        return lr.item() if devices.is_immediate(lr.device) else lr.detach().clone()

    def _admit(self, norm: Tensor, norms: Tensor, names: list[str], batch: int) -> bool:
        """Whether the gradient may be applied; raises under `stop`, False under `skip`.

        Under fp16 the scaler decides: overflow is how it finds its scale.
        """
        where = (self.updates, self.epoch, batch)
        evidence = clip.Evidence(where, norms, names, self._window.losses)
        if isinstance(self.precision, precisions.Float16):
            if self.nonfinite == "stop" and not bool(torch.isfinite(norm)):
                loss_is_finite = bool(torch.isfinite(self._window.mean_loss()))
                if not loss_is_finite or self.precision.exhausted():
                    self._stop(evidence)
            return True
        if self.nonfinite == "stop" and norm.is_cuda:
            self._verdicts.send(norm, evidence)
            return True
        if math.isfinite(norm.item()):
            return True
        if self.nonfinite == "stop":
            self._stop(evidence)
        return False

    def _raise_late_verdict(self, *, wait: bool = False) -> None:
        bad = self._verdicts.first_bad(wait=wait)
        if bad is not None:
            self._stop(bad)

    def _stop(self, evidence: clip.Evidence) -> NoReturn:
        update, epoch, batch = evidence.where
        parameter = clip.first_nonfinite(evidence.norms, evidence.names)
        losses = [bool(torch.isfinite(loss)) for loss in evidence.losses]
        if not all(losses):
            batch = batch - len(losses) + 1 + losses.index(False)
            cause = "the loss was not finite already"
        else:
            cause = "the loss was finite"
        what = f"of {parameter!r}" if parameter else "norm"
        raise NonFiniteError(
            f"update {update + 1}: the gradient {what} is not finite (epoch {epoch}, batch "
            f"{batch}; {cause}): lower the lr, clip the gradient, check this batch for NaN, or "
            "write nonfinite='skip' to leave such updates out",
            update=update,
            epoch=epoch,
            batch=batch,
            parameter=parameter,
        )


def _check_pair(model: nn.Module, optimizer: Optimizer) -> None:
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ConfigError(
            "LBFGS evaluates the loss several times per update, which a Step does not: "
            "call optimizer.step(closure) in a loop of your own"
        )
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    if held.isdisjoint(id(p) for p in model.parameters()):
        raise ConfigError(
            "the optimizer holds none of the model's parameters: build it from model.parameters() "
            "after the model has its final layers"
        )
