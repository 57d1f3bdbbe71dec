"""`Step(compile="step")`: an update as one compiled graph, and what runs where it cannot be one.

A call of the step comes here first. What it returns is the call's record, or None: the step then
does this micro-batch itself, in plain torch. So everything that is unusual (a shape too many, a
state that is not there yet, a batch that is wrong) is the plain loop's to do, or to refuse.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from trueloop.records import LossOutput, StepRecord
from trueloop.shapes import ListOf, OneOf, Shape
from trueloop.step import arguments
from trueloop.step.base import StepBase
from trueloop.step.bound_schedule import learning_rates
from trueloop.step.capturable import EAGER, MODEL, NAMES, UPDATE, Extent, extent
from trueloop.step.compile_trial import CompileTrial
from trueloop.step.lowering import NotCompiledError
from trueloop.step.nonfinite import NonFiniteContext
from trueloop.step.open_windows import open_windows
from trueloop.step.step_graphs import (
    BatchGraph,
    EndGraph,
    ReplacedError,
    Shared,
    StateMissingError,
    SumGraph,
    UpdateGraph,
)
from trueloop.step.update_graph import UpdateSpec

FIRST = 3
"""Updates that are made in plain torch: the optimizer makes its state, mistakes are refused in
their own words, and whoever watches the training has something to see."""
SHAPES = 8
"""Distinct shapes of a batch that get a graph."""


class CompiledStep:
    """The compiled side of one step."""

    STATE: ClassVar[Shape] = {"shapes": ListOf(str), "choice": OneOf(None, str)}
    """The form of the state that `load_state_dict` takes."""

    def __init__(self, step: StepBase, mode: str) -> None:
        self._step = step
        self._mode = mode
        self._trial = CompileTrial(step.device) if mode == "auto" else None
        self._shared = Shared(step)
        self._views: tuple[Any, Any] = (None, None)
        """The plain model and the compiled one, where the model is what is compiled."""
        self._extent: Extent | None = None
        self._graphs: dict[Hashable, BatchGraph] = {}
        self._last: tuple[Hashable, BatchGraph | None] = (None, None)
        """The graph that ran last, and what beside the batch it is for."""
        self._shapes: list[str] = []
        """Of the batches that have a graph."""
        self._ends: dict[Hashable, EndGraph] = {}
        self._summed: list[nn.Parameter] = []
        """Parameters whose gradients of the open window are in the sums."""

    @property
    def level(self) -> str:
        """The part that is compiled: `update`, `gradient` or `model`; empty before that is
        known."""
        return "" if self._extent is None else self._extent.level

    def state_dict(self) -> dict[str, Any]:
        """The choices that decide which updates are compiled: a run that is resumed makes the same
        ones."""
        choice = None if self._trial is None else self._trial.choice
        return {"shapes": list(self._shapes), "choice": choice}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what `state_dict` returned."""
        self._shapes = list(state["shapes"])
        if self._trial is not None:
            self._trial.choice = state["choice"]

    def end_update(self) -> None:
        """An update has ended, in whatever way it was made."""
        if self._trial is not None and (found := self._trial.end()):
            self._step._warn_once("auto", f"compile='auto': {found}", stacklevel=7)

    def take(self, batch: Any, closes: bool, position: int) -> StepRecord | None:
        """Take one micro-batch, which `closes` its window or not, at its `position` in the epoch;
        None: it is left to the step."""
        step = self._step
        if step.updates + step.skipped < FIRST or self.level == EAGER:
            return None
        if self._extent is None and self._decide(extent(step)) == EAGER:
            return None
        is_plain = self._trial is not None and self._trial.begins_plain(closes)
        if self.level == MODEL:
            step._forward = self._views[not is_plain]
        if is_plain or self.level == MODEL:
            return None
        samples, tokens = arguments.counted(batch, step.batch, step.epoch, False)
        graph = self._graph_for(batch, samples)
        if graph is None or not self._run(graph, batch):
            return None
        count, window = graph.count, step._window
        output = LossOutput(graph.loss, count, parts=graph.parts)
        window.add(LossOutput.of(output) if graph.parts or count is not None else output, samples)
        window.tokens += tokens
        if step.on_outputs is not None:
            step.on_outputs(graph.outputs, graph.targets)
        if isinstance(graph, UpdateGraph):
            return self._close(position, graph)
        self._stash(graph)
        if not closes:
            open_windows.add(step)
            return step._record(position, grad_norm=None, updated=False)
        return self._end(position)

    def _decide(self, found: Extent) -> str:
        """Settle what is compiled, and say once where it is not all."""
        self._extent = found
        if found.level == MODEL:
            view = self._step._parallel.view
            compiled: Any = torch.compile(view)
            self._views = (view, compiled)
            # From this update on, so that a run that was resumed here makes it in the same way.
            self._step._forward = compiled
        if found.reason:
            self._step._warn_once(
                "compile",
                f"compile={self._mode!r}: {found.reason}, so {NAMES[found.level]}, and the rest "
                "is run as it is",
                stacklevel=5,
            )
        return found.level

    def _graph_for(self, batch: Any, samples: int) -> BatchGraph | None:
        """The graph of batches like this one; None for one shape too many."""
        step, plan = self._step, None
        if self.level == UPDATE and step.accumulate == 1:
            plan = self._shared.plan()
        kind = (step.on_outputs is not None, plan)
        seen, graph = self._last
        # The guards know the shapes, and to look is faster than to find it by its shapes.
        if graph is not None and kind == seen and graph.finds(batch):
            return graph
        shape = shape_of(batch)
        graph = self._graphs.get((shape, *kind))
        if graph is None:
            if not self._admits(str(shape)):
                return None
            graph = self._graphs[shape, *kind] = self._made(*kind, samples)
        self._last = (kind, graph)
        return graph

    def _admits(self, shape: str) -> bool:
        """Whether batches of this shape have a graph; the first ones get it."""
        if shape in self._shapes:
            return True
        if len(self._shapes) >= SHAPES:
            self._step._warn_once(
                "shapes",
                f"compile={self._mode!r}: batches have more than {SHAPES} distinct shapes, and "
                "each would be compiled by itself: those after the first ones run as they are. Pad "
                "them to a few lengths, or write compile=True",
                stacklevel=6,
            )
            return False
        self._shapes.append(shape)
        return True

    def _made(self, outputs: bool, plan: UpdateSpec | None, samples: int) -> BatchGraph:
        if plan is None:
            return SumGraph(self._shared, outputs=outputs, samples=samples)
        return UpdateGraph(self._shared, plan, outputs=outputs, samples=samples)

    def _run(self, graph: BatchGraph, batch: Any) -> bool:
        """Run the graph; False, with nothing done, where it cannot be."""
        if isinstance(graph, SumGraph):
            self._begin(graph)
        try:
            graph(batch)
            return True
        except ReplacedError:
            self._forget()  # the next update is compiled for the parameters that there are now
            return False
        except StateMissingError:
            return False
        except Exception as error:
            if graph.called:
                raise
            self._forget()
            level = EAGER if isinstance(_cause(error), NotCompiledError) else MODEL
            self._decide(Extent(level, _reason(error)))
            return False

    def _forget(self) -> None:
        self._graphs.clear()
        self._last = (None, None)

    def _begin(self, graph: SumGraph) -> None:
        """Let the sums have the window so far."""
        window, gradients = self._step._window, self._step._gradients
        if not window.is_open:
            self._summed = []
            graph.reference = self._shared.number("reference", math.nan)
            return
        graph.reference = self._shared.number("reference", window.reference)
        self._summed = []
        for parameter, stashed in zip(gradients.parameters, gradients.stashed, strict=True):
            if stashed is None:
                continue
            total = self._shared.sum_of(parameter)
            if stashed is not total:
                total.copy_(stashed)
            self._summed.append(parameter)

    def _stash(self, graph: BatchGraph) -> None:
        """The sums are the step's stashed gradients."""
        used = set(graph.version.with_gradient()).union(self._summed)
        gradients = self._step._gradients
        gradients.stashed = [
            self._shared.sums[p] if p in used else None for p in gradients.parameters
        ]

    def _end(self, position: int) -> StepRecord:
        """Apply the window that is closed by what was just summed."""
        step = self._step
        summed = [
            p
            for p, stashed in zip(step._gradients.parameters, step._gradients.stashed, strict=True)
            if stashed is not None
        ]
        if self.level == UPDATE:
            plan = self._shared.plan()
            key = (plan, tuple(map(id, summed)))
            graph = self._ends.get(key)
            try:
                if graph is None:
                    graph = self._ends[key] = EndGraph(self._shared, plan, summed)
                graph()
                return self._close(position, graph)
            except StateMissingError:
                self._ends.pop(key, None)
        step._gradients.restore()
        return step._update(position)

    def _close(self, position: int, graph: UpdateGraph | EndGraph) -> StepRecord:
        """After the graph of an update: what of it is the host's."""
        step, window = self._step, self._step._window
        where = (step.updates, step.epoch, position)
        names = graph.names if isinstance(graph, EndGraph) else graph.version.names
        evidence = NonFiniteContext(
            where, graph.norms, names, window.losses, window.total, window.mean
        )
        stepped = step._nonfinite.admits(graph.norm, evidence)
        stepped = stepped and step.precision.conclude(graph.norm)
        step.updates += stepped
        step.skipped += not stepped
        lrs = learning_rates(step._groups)
        record = step._record(
            position, grad_norm=graph.norm, lrs=lrs, updated=stepped, skipped=not stepped
        )
        self.end_update()
        window.close()
        step._gradients.clear()
        if stepped:
            if step._average is not None:
                step._average.update(step.updates)
            for schedule in step._schedules.ticking:
                schedule.tick("update", 4)
        return record


def shape_of(batch: Any) -> Hashable:
    """The properties of a batch that a graph is made for: its structure, and its tensors' shapes
    and dtypes."""
    if isinstance(batch, Tensor):
        return (batch.shape, batch.dtype, batch.device.type)
    if isinstance(batch, (tuple, list)):
        return (type(batch), *map(shape_of, batch))
    if isinstance(batch, dict):
        return (type(batch), *((name, shape_of(part)) for name, part in batch.items()))
    return type(batch).__qualname__


def _cause(error: BaseException) -> BaseException:
    """The first cause of an error."""
    while isinstance(error.__cause__, Exception):
        error = error.__cause__
    return error


def _reason(error: BaseException) -> str:
    """One line about what the compiler does not take."""
    error = _cause(error)
    if "data-dependent" in str(error).lower():
        return "the forward or the loss decides by a tensor's values"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:200].rstrip(".:")
