"""Step: one optimizer update, every line in the right place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

import torch
from torch import nn
from torch.optim import Optimizer

from trueloop import _options, ranks
from trueloop.errors import LossError
from trueloop.records import LossOutput, StepRecord, batch_counts
from trueloop.shapes import Shape
from trueloop.step import (
    arguments,
    averaging,
    clip,
    precision as precisions,
    saved,
    splitting,
    strategy,
)
from trueloop.step.accumulate import Gradients, MicroBatchWindow
from trueloop.step.averaging import EMA, SWA, AveragedWeights
from trueloop.step.base import StepBase
from trueloop.step.bound_schedule import check_scores, learning_rates, prefixed
from trueloop.step.bound_schedules import BoundSchedules
from trueloop.step.capture import forward_and_graphs
from trueloop.step.compiled_step import CompiledStep
from trueloop.step.fused_update import FusedUpdate
from trueloop.step.global_window import GlobalWindow
from trueloop.step.nonfinite import NonFiniteContext, NonFinitePolicy
from trueloop.step.open_windows import detached, ends_epoch, open_windows, warn_open_window, watched
from trueloop.step.outliers import NormHistory, Outliers, Position, checked_outliers
from trueloop.step.ownership import Ownership
from trueloop.step.parallel import DDPOptions, LossFn, Parallel
from trueloop.step.recompute import Recompute, recompute_blocks
from trueloop.step.schedule import Length, Plan, Schedule, Scores
from trueloop.step.sharding import FSDPOptions
from trueloop.step.unfreezing import unfreezing

_NOTHING: AbstractContextManager[Any] = nullcontext()


class Step(StepBase):
    """One optimizer update per call, or one micro-batch of it. docs/loop.md has the details.

    `Step` draws no random numbers and never changes a module's mode. With the same batches and
    seeds the weights are bitwise those of the loop written by hand. After an error the accumulation
    window is given up with all of its micro-batches, and the next call starts a new one. Two losses
    (a GAN) are two steps: neither uses what the other's backward leaves on its parameters.

    On many ranks each calls the step with its own part of the same global batches, equally often,
    and takes a state between two updates. An update has the gradient of all parts together, each
    sample or token counted once; `loss`, `parts`, `samples` and `grad_norm` of its record are the
    same on all. `step.model` is the bare module.

    Args:
        model: the module to train.
        optimizer: any torch optimizer whose `step` needs no closure, or a list of several that make
            one update together (Muon and AdamW), each parameter in one of them. Schedule-free ones
            are put in train mode by each call; see `evaluating`.
        loss_fn: `loss_fn(model, batch)` returns the batch's mean loss, a scalar; `(loss, count)` if
            the loss is averaged over something other than samples (tokens); `(loss, parts)` or
            `(loss, count, parts)` with a dict of named parts to log; or a `LossOutput`.
        schedule: one of `trueloop.schedules`, for each optimizer from its own lr; or a list with
            one each (None: that lr stays). It ticks only when the optimizer really stepped.
        precision: `fp32`, `bf16` (autocast) or `fp16` (autocast and loss scaling).
        accumulate: micro-batches per update. The gradient is that of their union, ragged and short
            windows included; a loss that compares the samples of a batch (InfoNCE) compares those
            of one micro-batch. A window ends early with the epoch: after as many batches as `plan`
            says, at `step(batch, last=True)`, at `flush()` or at `end_epoch()`.
        clip_norm: largest global L2 norm of the gradient.
        clip_value: largest absolute entry of the gradient.
        nonfinite: `stop` raises `NonFiniteError` at a NaN or infinite gradient, on CUDA one or a
            few updates late; `skip` leaves that update out, counts it in `skipped`, and waits for
            the device. Under fp16 the scaler's own skips are not errors.
        outliers: at a gradient norm far above the running median, the gradient is clipped to that,
            or the update skipped and counted in `skipped`.
        on_oom: `accumulate` splits a batch that is too large for the memory into parts with the
            gradient of the whole (docs/memory.md); `stop` raises torch's error.
        compile: `step` makes the whole update one graph, `auto` does if that is faster; True, a
            mode or a dict of options of `torch.compile` compiles the model (docs/compile.md).
        recompute: blocks whose activations are computed again in the backward pass: a class of
            modules, its name, or every so many-th block.
        average: `EMA(0.999)` or `SWA()`: an average of the weights is what is evaluated, saved and
            used; see `evaluating`. A state has the weights in training beside it.
        unfreeze: `{"backbone": "2 epochs"}`: modules, by name, that are frozen until then (docs/
            fine-tuning.md). The optimizer has their parameters from the start.
        parallel: `ddp` or `DDPOptions`: each rank has the whole model, and all of `loss_fn` is
            DDP's forward; `fsdp` or `FSDPOptions`: each has a shard, and `loss_fn` calls
            `model(...)`; one on the device meta gets its values here. In one process it changes
            nothing. A model that is wrapped or sharded already stays so.

    Raises:
        ConfigError: options that cannot work; at the first update, a parameter that gets a gradient
            and that no optimizer has.
    """

    STATE: ClassVar[Shape] = saved.SHAPE
    """The form of the state that `load_state_dict` takes, without the `model`."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer | Sequence[Optimizer],
        loss_fn: LossFn,
        *,
        schedule: Schedule | Sequence[Schedule | None] | None = None,
        precision: str = "fp32",
        accumulate: int = 1,
        clip_norm: float | None = None,
        clip_value: float | None = None,
        nonfinite: str = "stop",
        outliers: Outliers | None = None,
        on_oom: str = "stop",
        compile: bool | str | dict[str, Any] | None = None,
        recompute: Recompute | None = None,
        average: EMA | SWA | None = None,
        unfreeze: Mapping[str, Length] | None = None,
        parallel: str | DDPOptions | FSDPOptions | None = None,
    ) -> None:
        clip.check_limits(clip_norm, clip_value)
        arguments.check_model(model)
        self.optimizers = arguments.checked_optimizers(optimizer)
        arguments.check_pairs(model, self.optimizers)
        arguments.check_loss_fn(loss_fn)
        schedules = arguments.checked_schedules(schedule, self.optimizers)
        self._ranks = ranks.world_size()
        self._parallel = strategy.by_option(parallel, model, self.optimizers)
        self._parallel = splitting.by_option(on_oom, self, compile)
        self._is_alone = type(self._parallel) is Parallel  # then nothing of it is called
        self.model = self._parallel.model
        recompute_blocks(self.model, recompute, compile)
        self.loss_fn = loss_fn
        self.clip_norm, self.clip_value = clip_norm, clip_value
        self._gradients = Gradients(self.model, self.optimizers)
        self._unfreezing = unfreezing(self.model, self._gradients.held, unfreeze)
        self._ownership = Ownership(self.model, self._gradients, len(self.optimizers))
        self.device = self._parallel.device or self._gradients.parameters[0].device
        self.precision = precisions.by_name(precision, self.device)
        self._nonfinite = NonFinitePolicy(nonfinite, self.precision)
        self.outliers = checked_outliers(outliers)
        self._norms = NormHistory(self.outliers, self.precision)
        window = (GlobalWindow if ranks.is_distributed() else MicroBatchWindow)(accumulate)
        self._window = watched(self, window)
        self._compiled: CompiledStep | None
        self._forward, self._compiled = forward_and_graphs(self, compile)
        self._schedules = BoundSchedules(schedules, self.optimizers)
        self._groups = prefixed(self.optimizers)
        self._modes = averaging.modes_of(average, self.model, self.optimizers)
        self._average = self._modes if isinstance(self._modes, AveragedWeights) else None
        self._fused_updates = [FusedUpdate(optimizer) for optimizer in self.optimizers]
        self._warned = set()

    def __call__(
        self, batch: Any, *, last: bool | None = None, stand_in: bool = False
    ) -> StepRecord:
        """Take one batch, a micro-batch of the update.

        Args:
            batch: what `loss_fn` takes, on the model's device.
            last: whether it is its epoch's last, so that a short window is applied; None goes by
                `plan`.
            stand_in: this rank has no sample of the global batch; `batch` only keeps it in step
                with the others: its loss and its samples count for nothing.

        Returns:
            The record of the window so far; its tensors stay on the device.

        Raises:
            LossError: `loss_fn` returns no scalar with a graph.
            DataError: the batch has no samples.
            NonFiniteError: a gradient is NaN or infinite, and `nonfinite` is `stop`.
            OutlierError: more outliers in a row than `outliers` allows.
        """
        # 1. Window: which micro-batch of which update; a new window starts from no gradient.
        if stand_in is not False or not (last is None or type(last) is bool):
            arguments.check_flags(last, stand_in)
        if self._modes.any:
            self._modes.train()
        window, here = self._window, self.batch
        if not window.micro_batches:
            self._open_window()
        self.batch += 1
        closes = window.micro_batches + 1 >= window.size or (
            ends_epoch(self) if last is None else last
        )
        try:
            if self._compiled and (record := self._compiled.take(batch, closes, here)):
                return record
            output = self._forward_backward(batch, closes, stand_in)
            if self.on_outputs is not None and not stand_in:
                self.on_outputs(detached(output.outputs), detached(output.targets))
            if closes:
                if not self._is_alone:
                    self._parallel.check_synchronised()
                return self._update(here)
            self._gradients.stash()
            self._parallel.stash()
            open_windows.add(self)
        except BaseException:
            self._give_up()  # half a gradient must not reach an update
            raise
        return self._record(here, grad_norm=None, updated=False)

    def _forward_backward(self, batch: Any, closes: bool, stand_in: bool) -> LossOutput:
        """One micro-batch, the last of its window or not, from the batch to its gradients."""
        window, is_alone = self._window, self._is_alone
        with _NOTHING if is_alone else self._parallel.synchronising(closes):
            # 2. Forward and loss, under autocast.
            samples, tokens = batch_counts(batch)
            if not samples or stand_in:
                samples, tokens = arguments.counted(batch, self.batch, self.epoch, stand_in)
            with self.precision.autocast():
                output = self._loss(batch)
            if not output.loss.requires_grad:
                raise LossError(arguments.NO_GRAPH)

            # 3. Backward: gradients add up over the window; ranks exchange them on its last.
            loss = window.add(output, samples, stand_in)
            window.tokens += tokens
            if closes and not is_alone:
                window.begin_sum()
            if window.micro_batches > 1:
                self._gradients.restore()
                self._parallel.restore()
            is_plain = is_alone and not window.is_weightless
            with _NOTHING if is_plain else self._parallel.backward(window.is_weightless):
                self.precision.backward(loss)
        return output

    def _update(self, batch: int) -> StepRecord:
        """Close the window: everything between the last backward and the next batch."""
        # 4. Unscale (fp16): the gradients get their true size.
        if self.precision.scales:
            self.precision.unscale(self.optimizers)

        # 5. Divide, norm, clip: the window's gradient becomes the union's, touched once.
        names, gradients = self._gradients.dense()
        if not self._ownership.is_checked:
            self._ownership.check()
        if not gradients:
            raise LossError(arguments.NO_GRAPH)
        window = self._window
        if not self._is_alone:
            window.finish_sum()
        correction = window.correction()
        norms, gradients = clip.norms(gradients)
        norm = torch.linalg.vector_norm(norms)
        if not (isinstance(correction, float) and correction == 1.0):
            norm = norm * correction
        where, check, factor = (self.updates, self.epoch, batch), None, None
        if self._norms.is_on:
            check, factor = self._norms.check_norm(norm, Position(*where, window.micro_batches))
        clip.divide_and_clip(gradients, norm, correction, self.clip_norm, self.clip_value, factor)

        # 6. Optimizers: unless the gradient is not finite, or an outlier to be left out.
        admitted = norm.is_cpu and math.isfinite(norm.item())
        if not admitted:
            evidence = NonFiniteContext(
                where, norms, names, window.losses, window.total, window.mean
            )
            admitted = self._nonfinite.admits(norm, evidence)
        if check is not None:
            admitted = admitted and self._norms.admits(check)
        lrs = learning_rates(self._groups)
        stepped = admitted and self._apply()
        self.updates += stepped
        self.skipped += not stepped
        outcome = {"updated": stepped, "skipped": not stepped, "outlier": check}
        record = self._record(batch, grad_norm=norm, lrs=lrs, **outcome)

        # 7. Clear (set to None, so that the next backward writes instead of adding).
        if self._compiled:
            self._compiled.end_update()
        window.close()
        self._gradients.clear()

        # 8. Average and schedule: only after a real update.
        if stepped:
            if self._average is not None:
                self._average.update(self.updates)
            for schedule in self._schedules.ticking:
                schedule.tick("update", 3)
        return record

    def _loss(self, batch: Any) -> LossOutput:
        """The checked result of `loss_fn`."""
        if self._is_alone:
            return LossOutput.of(self.loss_fn(self._forward, batch))
        return self._parallel.loss(self.loss_fn, self._forward, batch)

    def _apply(self) -> bool:
        """Let the optimizers step, unless fp16 found an overflow; whether they did."""
        try:
            if self.precision.scales:
                return self.precision.step(self.optimizers)
            for update in self._fused_updates:
                update.step()
            return True
        except (AssertionError, TypeError, RuntimeError) as error:
            if "closure" in str(error) and not isinstance(error, RuntimeError):
                arguments.refuse_closure(*self.optimizers)
            self._parallel.explain(error)
            raise

    def _record(
        self, batch: int, *, lrs: dict[str, Any] | None = None, **outcome: Any
    ) -> StepRecord:
        """The record of this call: the window so far, with `outcome` as `StepRecord` has it."""
        window, lrs = self._window, learning_rates(self._groups) if lrs is None else lrs
        loss, parts = window.means()
        return StepRecord(
            epoch=self.epoch,
            batch=batch,
            update=self.updates,
            loss=loss,
            lr=next(iter(lrs.values())),
            samples=window.samples,
            lrs=lrs,
            parts=parts,
            tokens=window.tokens,
            **outcome,
        )

    def flush(self) -> StepRecord | None:
        """Apply the update of a window that is still open; all ranks call it together.

        Returns:
            The record of the update; None if no window is open.

        Raises:
            ConfigError: under fsdp: write `step(batch, last=True)`.
        """
        if not self._window.is_open:
            return None
        try:
            self._modes.train()
            self._gradients.restore()
            self._window.begin_sum()
            self._parallel.synchronise(self._gradients.parameters)
            return self._update(self.batch - 1)
        except BaseException:
            self._give_up()
            raise

    def end_evaluation(self, scores: Scores) -> None:
        """Tick a metric schedule by the scores of an evaluation that is not at the end of an epoch.

        Ends of epochs are then `end_epoch(evaluated=False)`.

        Args:
            scores: what the schedule watches: an `EvalRecord`, a dict or one number.
        """
        check_scores(scores)
        self._schedules.tick_metric(scores)

    def end_epoch(self, scores: Scores | None = None, *, evaluated: bool = True) -> None:
        """End the epoch: tick the epoch schedule, and the metric schedule by its scores.

        A window that is still open is applied, with a warning: what was evaluated before was not
        the epoch's result.

        Args:
            scores: as in `end_evaluation`.
            evaluated: False: the epoch has no scores, and a metric schedule does not step.
        """
        _options.flag("evaluated", evaluated)
        if self._window.is_open:
            warn_open_window(self, "end_epoch() applied its update only now")
            self.flush()
        self._nonfinite.raise_late(wait=True)
        self._norms.raise_late(wait=True)
        check_scores(scores)
        for schedule in self._schedules.ticking:
            schedule.tick("epoch", 2)
        if evaluated:
            self._schedules.tick_metric(scores)
        self.epoch += 1
        self.batch, self.resumed = 0, False

    def restart_epoch(self) -> None:
        """Go back to the epoch's first batch: an open window is given up, applied updates stay."""
        self._give_up()
        self.batch, self.resumed = 0, False

    @property
    def is_accumulating(self) -> bool:
        """Whether a window is open: there are gradients that no update has applied yet."""
        return self._window.micro_batches > 0

    def plan(
        self, *, epochs: int | None = None, updates: int | None = None, batches: int | None
    ) -> Plan:
        """Set the length of the run, before the first batch (`fit` does it).

        From then on the step knows the last batch of each epoch, where it closes a short
        accumulation window, and schedules know the length of the run. Without `epochs` and
        `updates` the length is unknown.

        Args:
            epochs: passes over the data.
            updates: optimizer updates, in place of `epochs`.
            batches: micro-batches in each epoch; None: unknown.

        Returns:
            The plan.

        Raises:
            ConfigError: a number below 1, or both lengths at once.
            ScheduleError: the schedule does not end where the run ends.
        """
        self._plan = plan = Plan.of(epochs, updates, batches, self._window.size)
        self._schedules.bind(plan)
        self._schedules.check(plan)
        for part in (self._average, self._unfreezing):
            if part is not None:
                part.plan(plan)
        return plan

    def state_dict(self) -> dict[str, Any]:
        """Return all that the next call depends on, an open window with its gradients included.

        Plain data and tensors; the tensors are the live ones: copy or save before the next call.
        The position within the epoch is in `epoch` and `batch`. On many ranks all call it together,
        after an update. Under fsdp each tensor is a `DTensor`.
        """
        return saved.taken(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned; with a planned schedule, call `plan` before.

        Whole tensors are cut into shards where the model is sharded. After an error, step, model
        and optimizer are as they were.

        Args:
            state: what `state_dict` returned.

        Raises:
            RunError: the state is that of a step with other options, model or optimizer.
            ScheduleError: its schedule does not end where the planned run ends.
        """
        saved.restore(self, state)

    def _open_window(self) -> None:
        """The conditions before a window's first forward."""
        if self.batch == 0:
            arguments.check_ranks(self._ranks)
        if self._nonfinite.late.sent or self._norms.late.sent:
            self._nonfinite.raise_late()
            self._norms.raise_late()
        if self.device.type == "meta":
            arguments.refuse_meta()
        if not self.model.training:
            arguments.check_mode(self.model)
        if not self._schedules.is_bound:
            self._schedules.bind(None)
        if self._unfreezing is not None:
            self._unfreezing.begin(self.epoch, self.updates)
        self._gradients.refresh()
        if not self._is_alone:
            self._window.refresh_names()
            self._parallel.refresh(self._gradients.held)
        # Another step's backward (a GAN's other half) may have left gradients here.
        self._gradients.clear()
        if not self._ownership.is_checked:
            self._ownership.begin()

    def _give_up(self) -> None:
        """Forget an open window, and all that was done towards its update."""
        if self._compiled:
            self._compiled.end_update()
        self._window.close()
        self._gradients.clear()
        self._parallel.discard()
        self.precision.abandon()
