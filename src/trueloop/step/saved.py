"""A step's state: taken, compared with the current one, and loaded as a whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from trueloop import ranks
from trueloop.errors import RunError
from trueloop.shapes import COUNT, Anything, DictOf, ListOf, Maybe, OneOf, Shape, TupleOf, problem
from trueloop.step import averaging, joint_state, loading, modes, sharding
from trueloop.step.accumulate import MicroBatchWindow
from trueloop.step.base import StepBase
from trueloop.step.compiled_step import CompiledStep
from trueloop.step.global_window import GlobalWindow
from trueloop.step.outliers import NormHistory
from trueloop.step.splitting import Splitting

_SCHEDULE = OneOf(None, DictOf(str, Anything))
_NAME = OneOf(None, str)
SHAPE: Shape = {
    "optimizer": joint_state.SHAPE,
    "precision": DictOf(str, float),
    "schedule": OneOf(_SCHEDULE, ListOf(_SCHEDULE)),
    "window": MicroBatchWindow.STATE,
    "gradients": loading.GRADIENTS,
    "counters": TupleOf(COUNT, COUNT, COUNT, COUNT),
    "options": {
        "precision": str,
        "accumulate": int,
        "schedule": OneOf(_NAME, ListOf(_NAME)),
        "unfreeze": Maybe(_NAME),
    },
    "agreed": Maybe(GlobalWindow.AGREED),
    "average": Maybe(averaging.STATE),
    "train_weights": Maybe(loading.GRADIENTS),
    "outliers": Maybe(NormHistory.STATE),
    "compiled": Maybe(CompiledStep.STATE),
    "split": Maybe(ListOf(TupleOf(COUNT, COUNT))),
}
"""Of a state, beside the `model`."""


def taken(step: StepBase) -> dict[str, Any]:
    """Everything that the step's next call depends on."""
    step._nonfinite.raise_late(wait=True)
    step._norms.raise_late(wait=True)
    if sharding.fsdp_modules(step.model):
        # DDP has rank 0's after each update; here each rank has seen its own part.
        sharding.sync_buffers(step.model)
    was_eval = step._modes.is_eval
    step._modes.train()
    state = {
        "model": step.model.state_dict(),
        "optimizer": joint_state.taken(step.optimizers),
        "precision": step.precision.state_dict(),
        "schedule": step._schedules.state_dict(),
        "window": step._window.state_dict(),
        "gradients": step._gradients.state_dict(),
        "counters": [step.epoch, step.batch, step.updates, step.skipped],
        "options": _options(step),
    }
    if (agreed := step._window.agreed()) is not None:
        state["agreed"] = agreed
    if step._modes.any:
        # `model` is evaluated and given away; the run resumes from the others.
        state["model"], weights = step._modes.weights(step.model)
        if was_eval:
            weights = {name: weight.clone() for name, weight in weights.items()}
            step._modes.eval()
        state["train_weights"] = weights
    if step._average is not None:
        state["average"] = step._average.state_dict()
    if step.outliers is not None:
        state["outliers"] = step._norms.state_dict()
    if step._compiled is not None:
        state["compiled"] = step._compiled.state_dict()
    if isinstance(step._parallel, Splitting) and step._parallel.parts:
        state["split"] = [list(pair) for pair in step._parallel.parts.items()]
    return state


def restore(step: StepBase, state: dict[str, Any]) -> None:
    """Put the step where `state` was taken; after an error it is as it was."""
    _check_same(step, state)
    loading.check_model(step.model, state["model"])
    train_weights = state.get("train_weights", {})
    modes.check_weights(step.model, train_weights)
    gradients = step._gradients
    loading.check_gradients(gradients.names, gradients.parameters, state["gradients"])
    step._modes.train()
    with ExitStack() as undo:
        undo.callback(_keep(step))
        if state["schedule"] is not None:
            # Before the optimizers' state: a scheduler that is built sets the lr to its first.
            step._schedules.load_state_dict(state["schedule"])
            if step._plan is not None:
                step._schedules.check(step._plan, saved=True)
        joint_state.load(step.optimizers, state["optimizer"], sharding.placed_optimizer)
        step.precision.load_state_dict(state["precision"])
        loading.load_model(step.model, sharding.placed_model(step.model, state["model"]))
        modes.load_weights(step.model, sharding.placed_model(step.model, train_weights))
        if step._average is not None:
            step._average.load_state_dict(state["average"], state["model"])
        undo.pop_all()
    step._window.load_state_dict(state["window"], step.device)
    step._window.load_agreed(state.get("agreed"))
    step._gradients.load_state_dict(state["gradients"])
    if "outliers" in state:
        step._norms.load_state_dict(state["outliers"])
    if "compiled" in state and step._compiled is not None:
        step._compiled.load_state_dict(state["compiled"])
    if isinstance(step._parallel, Splitting):
        step._parallel.parts = dict(state.get("split", []))
    step.epoch, step.batch, step.updates, step.skipped = state["counters"]
    if step._unfreezing is not None:  # a window that is open here does not begin again
        step._unfreezing.refresh(step.epoch, step.updates)
    step.resumed = True


def _check_same(step: StepBase, state: dict[str, Any]) -> None:
    """Refuse a state of a different configuration: it would be a different run."""
    shape = {**SHAPE, "precision": step.precision.STATE, "model": loading.MODEL}
    if found := problem(state, shape, "step"):
        raise RunError(f"{found}: load a state that state_dict of a step like this one gave")
    joint_state.check_same(step.optimizers, state["optimizer"])
    saved = state["options"]
    for name, value in _options(step).items():
        if saved.get(name) != value:
            raise RunError(
                f"the checkpoint was written with {name}={saved.get(name)!r}, this step has "
                f"{name}={value!r}: build the step as it was"
            )
    _check_average(step, state.get("average"))
    if state["window"]["micro_batches"] >= step._window.size:
        raise RunError("step.window is full: use a different checkpoint")
    if state["window"]["micro_batches"] and ranks.is_distributed():
        raise RunError(
            "the checkpoint was saved inside an accumulation window by one process, and many ranks "
            "cannot share that window: resume with one process, or use a different checkpoint"
        )
    if state["schedule"] is not None and not step._schedules.any:
        raise RunError("step.schedule is there, and this step has none: build it as it was")


def _check_average(step: StepBase, saved: Any) -> None:
    here = None if step._average is None else repr(step._average.average)
    there = None if saved is None else saved["kind"]
    if here != there:
        raise RunError(
            f"the checkpoint was written with average={there}, this step has average={here}: build "
            "the step as it was"
        )


def _keep(step: StepBase) -> Callable[[], None]:
    """Remember what a load that is refused half-way has changed; returns what puts it back."""
    scaler = step.precision.state_dict()
    parts = [*map(loading.keep_optimizer, step.optimizers), loading.keep_model(step.model)]
    parts.append(step._schedules.keep())
    if step._average is not None:
        parts.append(step._average.keep())

    def put_back() -> None:
        step.precision.load_state_dict(scaler)
        for part in parts:
            part()

    return put_back


def _options(step: StepBase) -> dict[str, Any]:
    return {
        "precision": step.precision.name,
        "accumulate": step._window.size,
        "schedule": step._schedules.names,
        "unfreeze": None if step._unfreezing is None else step._unfreezing.described,
    }
