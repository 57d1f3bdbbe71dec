"""Step: one optimizer update, every line in the right place."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import torch
from torch import nn
from torch.optim import Optimizer

from trueloop import _options, ranks
from trueloop.errors import ConfigError, LossError
from trueloop.records import StepRecord
from trueloop.shapes import Shape
from trueloop.step import arguments, clip, precision as precisions, saved, splitting, strategy
from trueloop.step.accumulate import Window
from trueloop.step.bound_schedule import check_scores, learning_rates, prefixed
from trueloop.step.bound_schedules import BoundSchedules
from trueloop.step.capture import forward_and_graphs
from trueloop.step.global_window import GlobalWindow
from trueloop.step.gradients import Gradients
from trueloop.step.modes import Modes
from trueloop.step.nonfinite import Evidence, NonFinite
from trueloop.step.open_windows import detached, ends_epoch, open_windows, warn_open_window
from trueloop.step.outliers import NormHistory, Outliers, Position, checked_outliers
from trueloop.step.ownership import Ownership
from trueloop.step.parallel import DDPOptions, LossFn
from trueloop.step.recompute import Recompute, recompute_blocks
from trueloop.step.schedule import Plan, Schedule, Scores
from trueloop.step.sharding import FSDPOptions

OnOutputs = Callable[[Any, Any], object]


class Step:
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
            or the update left out and counted in `skipped`.
        on_oom: `accumulate` splits a batch that is too large for the memory into parts with the
            gradient of the whole (docs/memory.md); `stop` raises torch's error.
        compile: `step` makes the whole update one graph, `auto` does if that is faster; True, a
            mode or a dict of options of `torch.compile` compiles the model (docs/compile.md).
        recompute: blocks whose activations are computed again in the backward pass: a class of
            modules, its name, or every so many-th block.
        parallel: `ddp` or `DDPOptions`: each rank has the whole model, and all of `loss_fn` is
            DDP's forward; `fsdp` or `FSDPOptions`: each has a shard, and `loss_fn` calls
            `model(...)`; one on the device meta gets its values here. In one process it changes
            nothing. A model that is wrapped or sharded already stays so.

    Raises:
        ConfigError: options that cannot work; at the first update, a parameter that gets a gradient
            and that no optimizer holds.
    """

    STATE: ClassVar[Shape] = saved.SHAPE
    """What `load_state_dict` takes, beside the `model`."""

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
        parallel: str | DDPOptions | FSDPOptions | None = None,
    ) -> None:
        clip.check_limits(clip_norm, clip_value)
        arguments.check_model(model)
        self.optimizers = arguments.checked_optimizers(optimizer)
        """All of them, in their order."""
        arguments.check_pairs(model, self.optimizers)
        arguments.check_loss_fn(loss_fn)
        schedules = arguments.checked_schedules(schedule, self.optimizers)
        self._ranks = ranks.world_size()
        self._parallel = strategy.by_option(parallel, model, self.optimizers)
        self._parallel = splitting.by_option(on_oom, self, compile)
        self.model = self._parallel.model
        recompute_blocks(self.model, recompute, compile)
        self.loss_fn = loss_fn
        self.clip_norm, self.clip_value = clip_norm, clip_value
        self.epoch = 0
        """Epochs ended."""
        self.batch = 0
        """Micro-batches taken in the current epoch."""
        self.updates = 0
        """Updates applied."""
        self.skipped = 0
        """Updates left out because their gradient was not finite, or an outlier."""
        self.resumed = False
        """The position comes from a loaded state or a `fit` that was interrupted: the next `fit`
        goes on there, and not at the first batch of the epoch."""
        self.on_outputs: OnOutputs | None = None
        """Called as `on_outputs(outputs, targets)`, both detached, after each backward, with what
        `loss_fn` returned in its `LossOutput`: for example the `update` of a metric."""
        self._gradients = Gradients(self.model, self.optimizers)
        self._ownership = Ownership(self.model, self._gradients, len(self.optimizers))
        self.device = self._parallel.device or self._gradients.parameters[0].device
        self.precision = precisions.by_name(precision, self.device)
        self._nonfinite = NonFinite(nonfinite, self.precision)
        self.outliers = checked_outliers(outliers)
        """The policy; None for none."""
        self._norms = NormHistory(self.outliers, self.precision)
        self._window = (GlobalWindow if ranks.is_distributed() else Window)(accumulate)
        self._forward, self._compiled = forward_and_graphs(self, compile)
        self._schedules = BoundSchedules(schedules, self.optimizers)
        self._groups, self._modes = prefixed(self.optimizers), Modes(self.optimizers)
        self._plan: Plan | None = None
        self._warned: set[str] = set()

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
        _options.flag("stand_in", stand_in)
        self._modes.train()
        window, here = self._window, self.batch
        if not window.is_open:
            self._open_window()
        self.batch += 1
        closes = self._closes(last)
        try:
            if self._compiled and (record := self._compiled.take(batch, closes, here)):
                return record
            with self._parallel.synchronising(closes):
                # 2. Forward and loss, under autocast.
                samples, tokens = arguments.counted(batch, self.batch, self.epoch, stand_in)
                with self.precision.autocast():
                    output = self._parallel.loss(self.loss_fn, self._forward, batch)
                if not output.loss.requires_grad:
                    raise LossError(arguments.NO_GRAPH)

                # 3. Backward: gradients add up over the window; ranks exchange them on its last.
                loss = window.add(output, samples, stand_in)
                window.tokens += tokens
                if closes:
                    window.begin_sum()
                if window.micro_batches > 1:
                    self._gradients.restore()
                    self._parallel.restore()
                with self._parallel.backward(window.is_weightless):
                    self.precision.backward(loss)
            if self.on_outputs is not None and not stand_in:
                self.on_outputs(detached(output.outputs), detached(output.targets))
            if closes:
                self._parallel.check_synchronised()
                return self._update(here)
            self._gradients.stash()
            self._parallel.stash()
            open_windows.add(self)
        except BaseException:
            self._give_up()  # half a gradient must not reach an update
            raise
        return self._record(here, grad_norm=None, updated=False)

    def _update(self, batch: int) -> StepRecord:
        """Close the window: everything between the last backward and the next batch."""
        # 4. Unscale (fp16): the gradients get their true size.
        self.precision.unscale(self.optimizers)

        # 5. Divide, norm, clip: the window's gradient becomes the union's, touched once.
        names, gradients = self._gradients.dense()
        if not self._ownership.is_checked:
            self._ownership.check()
        if not gradients:
            raise LossError(arguments.NO_GRAPH)
        self._window.finish_sum()
        correction = self._window.correction()
        norms, gradients = clip.norms(gradients)
        norm = torch.linalg.vector_norm(norms)
        if not (isinstance(correction, float) and correction == 1.0):
            norm = norm * correction
        where, window, check, factor = (self.updates, self.epoch, batch), self._window, None, None
        if self._norms.is_on:
            check, factor = self._norms.judge(norm, Position(*where, window.micro_batches))
        clip.divide_and_clip(gradients, norm, correction, self.clip_norm, self.clip_value, factor)

        # 6. Optimizers: unless the gradient is not finite, or an outlier to be left out.
        evidence = Evidence(where, norms, names, window.losses, window.total, window.mean)
        admitted = self._nonfinite.admits(norm, evidence)
        admitted = admitted and self._norms.admits(check)
        lrs = learning_rates(self._groups)
        stepped = admitted and self._apply()
        self.updates += stepped
        self.skipped += not stepped
        outcome = {"updated": stepped, "skipped": not stepped, "outlier": check}
        record = self._record(batch, grad_norm=norm, lrs=lrs, **outcome)

        # 7. Clear (set to None, so that the next backward writes instead of adding).
        self._end_window()

        # 8. Schedule: ticks only after a real update.
        if stepped:
            self._schedules.tick_update()
        return record

    def _apply(self) -> bool:
        """Let the optimizers step, unless fp16 found an overflow; whether they did."""
        try:
            return self.precision.step(self.optimizers)
        except (AssertionError, TypeError) as error:
            if "closure" in str(error):
                arguments.refuse_closure(*self.optimizers)
            raise
        except RuntimeError as error:
            self._parallel.explain(error)
            raise

    def _record(
        self, batch: int, *, lrs: dict[str, Any] | None = None, **outcome: Any
    ) -> StepRecord:
        """What this call did: the window so far, with `outcome` as `StepRecord` has it."""
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

    def _closes(self, last: bool | None) -> bool:
        """Whether the batch just taken closes the window."""
        if last is not None:
            _options.flag("last", last)
        if self._window.micro_batches + 1 >= self._window.size:
            return True
        return ends_epoch(self) if last is None else last

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
            evaluated: False: there are no scores, and a metric schedule does not tick.
        """
        _options.flag("evaluated", evaluated)
        if self._window.is_open:
            warn_open_window(self, "end_epoch() applied its update only now")
            self.flush()
        self._nonfinite.raise_late(wait=True)
        self._norms.raise_late(wait=True)
        check_scores(scores)
        self._schedules.tick_epoch()
        if evaluated:
            self._schedules.tick_metric(scores)
        self.epoch += 1
        self.batch, self.resumed = 0, False

    def restart_epoch(self) -> None:
        """Go back to the epoch's first batch: an open window is given up, applied updates stay."""
        self._give_up()
        self.batch, self.resumed = 0, False

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer.

        Raises:
            ConfigError: the step has several: write `step.optimizers`.
        """
        if len(self.optimizers) > 1:
            raise ConfigError(
                f"the step has {len(self.optimizers)} optimizers: write step.optimizers, or one of "
                "them such as step.optimizers[0]"
            )
        return self.optimizers[0]

    def evaluating(self) -> AbstractContextManager[None]:
        """Return a context in which schedule-free optimizers are in eval mode.

        `model` then has the weights to use; after it the training continues from its own, bit by
        bit. Other optimizers do not change. `fit` evaluates so.
        """
        return self._modes.evaluating()

    def eval_weights(self) -> None:
        """As `evaluating`, until the next call of the step: `fit` ends with it."""
        self._modes.eval()

    @property
    def is_accumulating(self) -> bool:
        """Whether a window is open: there are gradients that no update has applied yet."""
        return self._window.is_open

    @property
    def accumulate(self) -> int:
        """Micro-batches per update."""
        return self._window.size

    @property
    def nonfinite(self) -> str:
        """What a gradient that is not finite leads to: `stop` or `skip`."""
        return self._nonfinite.policy

    @property
    def monitor(self) -> str | None:
        """The score that a metric schedule watches; None for any other. Of several the first."""
        return next(iter(self.monitors), None)

    @property
    def monitors(self) -> tuple[str, ...]:
        """The scores that the optimizers' metric schedules watch, each once."""
        return self._schedules.monitors

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
        given = {"epochs": epochs, "updates": updates, "batches": batches}
        for name, number in given.items():
            if number is not None:
                _options.whole(name, number)
        if epochs is not None and updates is not None:
            raise ConfigError(
                f"epochs={epochs} and updates={updates} both say how long the run is: write one "
                "of them"
            )
        per_epoch = None if batches is None else -(-batches // self._window.size)
        self._plan = plan = Plan(epochs, per_epoch, batches, updates)
        self._schedules.bind(plan)
        self._schedules.check(plan)
        return plan

    def state_dict(self) -> dict[str, Any]:
        """Return all that the next call depends on, an open window with its gradients included.

        Plain data and tensors; the tensors are the live ones: copy or save before the next call.
        The position within the epoch is in `epoch` and `batch`. On many ranks all call it together,
        after an update. Under fsdp the tensors are `DTensor`s.
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
        saved.take_up(self, state)

    def _open_window(self) -> None:
        """What must hold before a window's first forward."""
        if self.batch == 0:
            arguments.check_ranks(self._ranks)
        self._nonfinite.raise_late()
        self._norms.raise_late()
        if self.device.type == "meta":
            arguments.refuse_meta()
        arguments.check_mode(self.model)
        self._schedules.bind(None)
        self._gradients.refresh()
        self._window.refresh_names()
        self._parallel.refresh(self._gradients.held)
        # Another step's backward (a GAN's other half) may have left gradients here.
        self._gradients.clear()
        if not self._ownership.is_checked:
            self._ownership.begin()

    def _end_window(self) -> None:
        if self._compiled:
            self._compiled.end_update()
        self._window.close()
        self._gradients.clear()

    def _give_up(self) -> None:
        """Forget an open window, and all that was done towards its update."""
        self._end_window()
        self._parallel.discard()
        self.precision.abandon()

    def _warn_once(self, kind: str, what: str, stacklevel: int = 4) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(what, UserWarning, stacklevel=stacklevel)
