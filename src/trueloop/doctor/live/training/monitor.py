"""Does training get anywhere? The losses, the gradients and the updates of a run, put together.

Each backward's loss and a small gradient of each update are read on the CPU; on an accelerator only
in sampled updates. These also show which losses measure progress, and of which model.
"""

from __future__ import annotations

import weakref
from collections.abc import Set
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.objects import autograd_graph, inspection as kinds
from trueloop.doctor.live.objects.registry import WeakMap
from trueloop.doctor.live.probes import parameter_stats
from trueloop.doctor.live.probes.call_sites import near, path
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.live.tracing import is_abstract
from trueloop.doctor.live.training.gradient_spikes import AFTER, GradientSpike
from trueloop.doctor.live.training.loss_history import spread
from trueloop.doctor.live.training.update_history import (
    LOOKED,
    SUPERVISED,
    TOGETHER,
    UntrainedForward,
    UpdateHistory,
    UpdateObservations,
    until_next_stand,
)
from trueloop.doctor.live.training.validation_history import EvaluationSeries
from trueloop.doctor.model.events import Backward, Event, Loss, ModelForward
from trueloop.doctor.model.measurements import TrainingCourse
from trueloop.doctor.model.things import Model, Tensor

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from trueloop.doctor.live.context import Context
    from trueloop.doctor.live.hub import Hub
    from trueloop.doctor.live.nonfinite.monitor import NonFiniteMonitor

CODES = ("TH102", "TH103", "TH104", "TH105")
_SEARCHES = ("LBFGS", "Rprop")
"""Optimizers that ask for more than one gradient, or for none but its sign."""
_ASIDES = 32
_LONGEST = 4096
"""Calls between two updates that are noted."""
_SCALES = frozenset("Div Mul ToCopy View Squeeze Clone Alias".split())


class TrainingMonitor(Probe):
    def __init__(
        self, hub: Hub, watcher: Context, codes: Set[str], nonfinite: NonFiniteMonitor
    ) -> None:
        super().__init__(watcher)
        self.hub, self._nonfinite = hub, nonfinite
        hub.follows_training = not codes.isdisjoint(CODES)
        self.stream: UpdateHistory | None = None
        self._known, self._cycle = WeakMap[UpdateHistory](), UpdateObservations()
        self._total, self._count = 0.0, 0
        self._began = False
        """A backward has been run since the last step."""
        self._site: Any = None
        """Where it was run from, if that was looked at."""
        self._several = self._unread = False
        self._scaled: Any = None
        self._passes = 0
        self._near: Any = None
        """Where the latest loss without a graph was computed, as far as the nearest frames show."""
        self._key: Any = None
        """The same, as all of them do."""
        self._judged: tuple[Model, Loss] | None = None
        """The model of the current loss without a graph."""
        self._lost_inside = False

    # ------------------------------------------------------------------ called at every update

    def scaled(self, outputs: object, result: Any) -> None:
        """A scaler has multiplied a loss."""
        if not self.hub.follows_training:
            return
        self.hub.unsampled.leave()
        if type(outputs) is torch.Tensor and kinds.is_tensor(result):
            self._scaled = (weakref.ref(result), outputs.detach())

    def backward(self, tensors: object, frame: FrameType) -> None:
        """A backward begins."""
        if not self.hub.follows_training:
            return
        stream = self.stream
        if stream is not None and stream.evaluations.open:
            self._evaluated(stream)
        self._began, self._passes, self._near = True, 0, None
        number = self._nonfinite.number if self.hub.checks_finite else None
        if number is None:
            number = self._read(tensors)
        elif self._scaled is not None:
            self._scaled = None
        if number is not None:
            self._total += number
            self._count += 1
        if self.hub.sampling or stream is None or not until_next_stand(stream.updates):
            self._stands(user_frames.of_program(frame))

    def add(self, loss: float) -> None:
        """A backward was run, at such a loss, as the ones before it were."""
        self._began = True
        self._total += loss
        self._count += 1

    def _stands(self, frame: FrameType) -> None:
        """A backward is run from here."""
        site = (id(frame.f_code), frame.f_lasti)
        if self._site is not None and self._site != site:
            self._several = True
        self._site = site
        health = self._nonfinite
        if not health.calls.holds and not health.recall.is_at(frame):
            health.keep_calls()  # a different loop from the sampled one

    def _read(self, tensors: object) -> float | None:
        """The loss that a backward begins at; None where it cannot be read without waiting."""
        loss = autograd_graph.first_in(tensors)
        held, self._scaled = self._scaled, None
        value = held[1] if held is not None and held[0]() is loss else loss
        if type(value) is not torch.Tensor or value.numel() != 1:
            self._unread = True
            return None
        if value.device.type == "cpu" or (self.hub.sampling and not parameter_stats.capturing()):
            return float(value.item())
        return None

    def stepped(self, optimizer: Optimizer, frame: FrameType) -> None:
        """An optimizer has stepped."""
        if self.hub.multithreaded:
            self.hub.follows_training = False
            return
        stream = self.stream
        if stream is None or stream.optimizer() is not optimizer:
            stream = self._switch(optimizer)
        stream.updates += 1
        total, count = self._total, self._count
        self._total, self._count = 0.0, 0
        began, self._began = self._began, False
        site, self._site = self._site, None
        if not began or site is not None:
            if (stream.site or site) != site:
                self._several = True
            stream.site = site
        if self._unread or self._several:
            stream.odd = True
            self._unread = self._several = False
        if stream.mixed or stream.odd:
            return
        jumps = stream.jumps
        if count:
            loss = total / count
            if jumps.pending is None:
                stream.losses.append(loss)
            else:
                followed = stream.followed(loss)
                if followed is not None:
                    self._tell_jump(stream, followed)
        if not stream.doubtful and jumps.pending is None and not jumps.over:
            health = self._nonfinite
            known, health.small = health.small, None
            if known is None or known[0] is not stream.small:
                self._ask_gradients(stream, optimizer, frame)
            elif known[1] < jumps.limit and stream.updates < jumps.due:
                stream.squares.append(known[1])
            else:
                self._ask_gradients(stream, optimizer, frame)
        if len(stream.losses) >= TOGETHER or len(stream.squares) >= TOGETHER:
            stream.settle()

    def _ask_gradients(self, stream: UpdateHistory, optimizer: Optimizer, frame: FrameType) -> None:
        with self.hub.lock:
            if not self.hub.multithreaded:
                stream.settle()
                self._observe(stream, optimizer, frame)

    def _switch(self, optimizer: Optimizer) -> UpdateHistory:
        """Another optimizer steps than the time before."""
        last = self.stream
        known = self._known.get(optimizer)
        if known is None:
            known = UpdateHistory(weakref.ref(optimizer), odd=type(optimizer).__name__ in _SEARCHES)
            self._known.put(optimizer, known)
            if last is not None:
                self._end_of(last)
        elif last is not None:
            last.mixed = known.mixed = True
        self._nonfinite.keep_calls()  # perhaps a different model
        self.stream = known
        return known

    # ------------------------------------------------------------------ gradients

    def _observe(self, stream: UpdateHistory, optimizer: Optimizer, frame: FrameType) -> None:
        square = self._square(stream, optimizer)
        if square is None:
            return
        stands_out = square > stream.jumps.limit
        if not stands_out:
            stream.jumps.usual([square])
            if stream.updates < stream.jumps.due:
                return
        held = kinds.parameters_of(optimizer)
        norm = parameter_stats.total([each.grad for each in held if each.grad is not None])
        weights = parameter_stats.total(held)
        if not stands_out:
            stream.jumps.sample(stream.updates, norm, weights)
            return
        here = user_frames.sites(frame)
        place, stack = user_frames.user_place(here)
        turns = self.watcher.track().turns.now()
        event = Event(place=place, stack=stack, turns=turns)
        if stream.jumps.follow(stream.updates, norm, weights, (event, _rate(optimizer))):
            self.hub.sample(turns=AFTER)
        else:
            stream.jumps.usual([square])

    def _square(self, stream: UpdateHistory, optimizer: Optimizer) -> float | None:
        """Of the norm of a small gradient; None where it cannot be read without waiting."""
        if stream.small is None:
            stream.small = parameter_stats.small_of(optimizer)
        parameter = stream.small()
        gradient = None if parameter is None else parameter.grad
        if type(gradient) is not torch.Tensor:
            return None
        if not gradient.is_cpu and (not self.hub.sampling or parameter_stats.capturing()):
            return None
        plain = gradient.detach()
        return float(torch.dot(plain, plain).item())

    def _tell_jump(self, stream: UpdateHistory, jump: GradientSpike) -> None:
        optimizer = stream.optimizer()
        if optimizer is None or not stream.is_supervised or stream.doubtful:
            return
        with self.hub.lock:
            found = jump.measured(parameter_stats.total(kinds.parameters_of(optimizer)))
        if found is not None:
            event, found.rate = jump.where
            found.optimizer = self._thing(stream)
            self.watcher.measure(found.at(event))

    def _thing(self, stream: UpdateHistory) -> Any:
        optimizer = stream.optimizer()
        return None if optimizer is None else self.watcher.things.objects.get(optimizer)

    # ------------------------------------------------------------------ evaluations

    def begins(self, *loader: object) -> None:
        """A loader is gone through from its beginning."""
        self.hub.unsampled.leave()
        self._passes += 1
        self._near = None

    def evaluated(
        self, kind: str, args: Any, kwargs: Any, output: object, frame: FrameType
    ) -> None:
        """A loss was computed without a graph."""
        self.hub.unsampled.leave()
        stream = self.stream
        if stream is None or kind not in SUPERVISED or stream.mixed or stream.odd:
            return
        if type(output) is not torch.Tensor or output.numel() != 1:
            return
        frame = user_frames.of_program(frame)
        here = near(frame)
        if here != self._near:
            self._near = here
            self._key = None if is_abstract(output) else (*path(frame), self._passes)
        if self._key is None:
            return
        source = args[0] if args else kwargs.get("input")
        weight = source.size(0) if kinds.is_tensor(source) and source.dim() else 1
        if output.is_cpu:
            value: Any = output.item()
        elif parameter_stats.capturing():
            return
        else:
            value = output.detach().reshape(())
        if kwargs.get("reduction") == "sum":
            value = value / max(1, weight)
        series = stream.evaluations.lost(self._key, kind, value, weight)
        judged, self._judged = self._judged, None
        if judged is not None and series is not None and stream.looked >= LOOKED:
            self._note(stream, series, kind, *judged)

    def _note(
        self, stream: UpdateHistory, series: EvaluationSeries, kind: str, model: Model, event: Loss
    ) -> None:
        """The facts about a loss without a graph, in sampled updates."""
        known = any(model.shares_parameters(each) for each in stream.models)
        series.qualifies = known and kind in stream.kinds
        series.where = Event(place=event.place, stack=event.stack, turns=event.turns)
        series.stops = any(t.loop.leaves and t.loop in stream.loops for t in event.turns)

    def _evaluated(self, stream: UpdateHistory) -> None:
        """Training continues after evaluations."""
        stream.settle()
        evaluations = stream.evaluations
        evaluations.close(stream.updates)
        if evaluations.waits and (not self.hub.sampling or parameter_stats.capturing()):
            return
        for series in evaluations.settle():
            if not series.qualifies or not stream.is_supervised:
                continue
            found = series.measured()
            if found is not None:
                self.watcher.measure(found.at(series.where))

    def end(self) -> None:
        """The run is over."""
        if self.stream is not None and not self.hub.cut:
            self._end_of(self.stream)

    def _end_of(self, stream: UpdateHistory) -> None:
        stream.settle()
        followed = stream.jumps.end()
        if followed is not None:
            self._tell_jump(stream, followed)
        if stream.evaluations.open:
            self._evaluated(stream)

    # ------------------------------------------------------------------ called in sampled updates

    def unwatched(self) -> None:
        self._cycle = UpdateObservations(whole=False)
        self._judged = None
        if self.stream is not None:
            self.stream.sizes.forget()

    def after_forward(self, module: nn.Module, given: Any, output: object, event: Event) -> None:
        assert isinstance(event, ModelForward)
        self._keep_small()
        inside, self._lost_inside = self._lost_inside, False
        if isinstance(event.output, Tensor) and event.output.graph:
            self._cycle.forwards.add(event.serial)
            return
        outputs = [weakref.ref(each) for each in autograd_graph.tensors_in(output)]
        self._cycle.asides.append(UntrainedForward(event, outputs, inside))
        if len(self._cycle.asides) > _ASIDES:  # those of the training turn are few
            self._cycle.asides.pop(0)

    def _keep_small(self) -> None:
        """Without an optimizer a cycle has no end."""
        cycle = self._cycle
        if len(cycle.forwards) + len(cycle.losses) + len(cycle.criteria) > _LONGEST:
            self._cycle = UpdateObservations(whole=False)

    def lost(self, given: dict[str, Any], output: torch.Tensor, event: Event) -> None:
        assert isinstance(event, Loss)
        if not event.grad:
            self._qualify(given, event)
        elif output.numel() == 1 and not parameter_stats.capturing():
            self._learn(event, given, output)

    def _qualify(self, given: dict[str, Any], event: Loss) -> None:
        """Of a loss without a graph: which model is it of?"""
        self._judged = None
        source = next(iter(given.values()), None)
        inside = self.watcher.track().inside
        if inside and next(kinds.weights(inside[0]), None) is not None:
            self._lost_inside = True
            self._judged = (self.watcher.things.model(inside[0]), event)
            return
        aside = next((each for each in self._cycle.asides if _shares(each, source)), None)
        if aside is not None:
            aside.evaluated = True
            self._judged = (aside.event.model, event)

    def _learn(self, event: Loss, given: dict[str, Any], output: torch.Tensor) -> None:
        """Of a loss that is trained on: what a constant would lose, and how predictions differ."""
        self._keep_small()
        from_data = isinstance(event.target, Tensor) and event.target.loader is not None
        value = output.detach().item()
        self._cycle.criteria[event.criterion] = (value, from_data)
        stream, source = self.stream, given.get("input")
        if stream is None or not kinds.is_tensor(source):
            return
        if event.criterion.reduction == "mean":
            stream.guess.see(event.criterion.kind, given)
            stream.spread = spread(source.detach())
        else:
            stream.guess.known = False

    def before_backward(self, tensors: object, event: Event, frame: FrameType) -> None:
        assert isinstance(event, Backward)
        self._keep_small()
        self._cycle.losses.append(event.loss)
        loss = next(autograd_graph.tensors_in(tensors), None)
        self._cycle.pure = self._cycle.pure and loss is not None and _is_pure(loss)

    def before_step(self, optimizer: Optimizer, frame: FrameType) -> None:
        stream = self.stream
        if (
            stream is not None
            and stream.optimizer() is optimizer
            and not parameter_stats.capturing()
        ):
            stream.sizes.before(optimizer)

    def after_step(self, optimizer: Optimizer, event: Event, frame: FrameType) -> None:
        cycle, self._cycle = self._cycle, UpdateObservations()
        stream = self.stream
        if stream is None or stream.optimizer() is not optimizer or parameter_stats.capturing():
            return
        stream.sizes.after(optimizer, stream.updates + 1)
        if cycle.whole and not stream.odd:
            stream.looked += 1
            self._check(stream, cycle, event)
        if stream.updates >= stream.asked and stream.is_supervised:
            self._ask(stream, event)

    def _check(self, stream: UpdateHistory, cycle: UpdateObservations, event: Event) -> None:
        """Is what was seen of this update what supervised training looks like?"""
        losses = [each for each in cycle.losses if each is not None]
        criteria = [criterion for each in losses for criterion in each.criteria]
        kinds = {each.kind for each in criteria}
        if len(losses) != len(cycle.losses) or not kinds or not kinds <= SUPERVISED:
            stream.odd = True
            return
        stream.kinds |= kinds
        stream.models |= {model for each in losses for model in each.models}
        stream.loops = tuple(turn.loop for turn in event.turns)
        known = [cycle.criteria[each] for each in criteria if each in cycle.criteria]
        joined = {serial for each in losses for serial in each.forwards}
        from_data = bool(known) and all(each[1] for each in known)
        alone = cycle.pure and len(cycle.forwards) == len(losses)
        asides = [each for each in cycle.asides if not each.evaluated]
        stream.pure = stream.pure and cycle.pure
        stream.acts = stream.acts or bool(asides)
        aside = any(each.event.turn == event.turn for each in asides)
        if aside or not cycle.forwards <= joined or not (from_data or alone):
            stream.doubtful = True
        if stream.acts and not stream.pure:
            stream.doubtful = True
        if not cycle.pure or not len(losses) == len(known) == len(cycle.criteria):
            stream.guess.known = False
        elif self._count:
            stream.level += sum(each[0] for each in known) / len(known)
            stream.trained += self._total / self._count

    def _ask(self, stream: UpdateHistory, event: Event) -> None:
        """Say how far training has come; the rules judge."""
        stream.settle()
        stream.asked = int(stream.updates * 1.5)
        course, sizes, guess = stream.course.means(), stream.sizes.measured(), stream.guess.loss
        if stream.doubtful or course is None or sizes is None or not guess or not stream.trained:
            return
        scale = stream.level / stream.trained
        progress = TrainingCourse(
            optimizer=self._thing(stream),
            first=course.first * scale,
            latest=course.latest * scale,
            error=course.error * scale,
            guess=guess,
            spread=stream.spread,
            update=stream.updates + 1,
            kind=next(iter(stream.kinds)) if len(stream.kinds) == 1 else "",
            sizes=sizes,
        )
        self.watcher.measure(progress.at(event))


def _rate(optimizer: Optimizer) -> float | None:
    rates = set(parameter_stats.rates(optimizer))
    return rates.pop() if len(rates) == 1 else None


def _shares(aside: UntrainedForward, source: Any) -> bool:
    """A tensor is what a forward gave, or a view of it."""
    if not kinds.is_tensor(source):
        return False
    alive = (reference() for reference in aside.outputs)
    memory = {each.untyped_storage().data_ptr() for each in alive if each is not None}
    return source.untyped_storage().data_ptr() in memory


def _is_pure(loss: torch.Tensor) -> bool:
    """It is what a loss function gave, up to a factor."""
    node = autograd_graph.node_of(loss)
    for _ in range(8):
        if node is None:
            return False
        noted = node.metadata.get(autograd_graph.NOTE)
        if noted is not None and noted.is_loss:
            return len(noted.criteria) == 1
        before = [each for each, _ in node.next_functions if each is not None]
        if len(before) != 1 or autograd_graph.name_of(node) not in _SCALES:
            return False
        node = before[0]
    return False
