"""Learning-rate schedules."""

from __future__ import annotations

import ast
import sys
from functools import partial
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any

from torch.optim import lr_scheduler, swa_utils

from trueloop.doctor.live.frames import source_map, user_frames
from trueloop.doctor.live.frames.live_expressions import FrameNames, value_of
from trueloop.doctor.live.frames.value_origins import origins
from trueloop.doctor.live.objects import constructor_arguments, inspection
from trueloop.doctor.live.patches.optimizers import outside
from trueloop.doctor.model import vocabulary
from trueloop.doctor.model.drawn_rates import only_draws
from trueloop.doctor.model.events import Made, SchedulerStep
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.things import Scheduler

if TYPE_CHECKING:
    from torch.optim.lr_scheduler import LRScheduler

    from trueloop.doctor.live.hub import Method, P, R
    from trueloop.doctor.live.patches.patching import Patches
    from trueloop.doctor.live.recorder import Recorder

_FIRST = 8
_RATES = 400
"""Learning rates that are kept of one schedule."""
_TORCHS = vars(lr_scheduler)


def install(recorder: Recorder, patches: Patches) -> None:
    for kind in (*vars(lr_scheduler).values(), swa_utils.SWALR):
        if not isinstance(kind, type) or not kind.__module__.startswith("torch.optim."):
            continue
        if "step" in vars(kind) and kind.__name__ != "Optimizer":
            patches.replace(kind, "step", partial(_step, recorder))
        if "get_lr" in vars(kind):
            patches.replace(kind, "get_lr", partial(_get_lr, recorder))
        if "__init__" in vars(kind) and issubclass(kind, lr_scheduler.LRScheduler):
            patches.replace(kind, "__init__", partial(_made, recorder))


def _made(
    recorder: Recorder, original: Method[LRScheduler, P, None]
) -> Method[LRScheduler, P, None]:
    hub = recorder.hub

    def __init__(self: LRScheduler, /, *args: P.args, **kwargs: P.kwargs) -> None:
        track = hub.guarded(recorder.track)
        if track is None or track.quiet:
            original(self, *args, **kwargs)
            return
        track.quiet = True  # the first step is the constructor's own
        try:
            original(self, *args, **kwargs)
        finally:
            track.quiet = False
        caller = sys._getframe(1)

        def say() -> None:
            frame = outside(self, caller)
            hub.sample(why=("made", frame.f_code, frame.f_lasti))
            place = recorder.place(frame)
            thing = recorder.things.scheduler(self, place)
            given = constructor_arguments.bound(original, self, *args, **kwargs)
            _note_arguments(recorder, thing, original if frame is caller else type(self), given)
            _by_function(thing, place)
            if thing.arguments.get("last_epoch", -1) != -1:
                thing.attributes["last_epoch"] = thing.arguments["last_epoch"]
            recorder.emit(Made, frame, thing=thing)

        hub.guarded(say)

    return __init__


def _note_arguments(
    recorder: Recorder, thing: Scheduler, original: Any, given: dict[str, Any]
) -> None:
    """The arguments, as `static/stubs/schedules.py` has them."""
    thing.arguments = constructor_arguments.plain(given)
    thing.written = constructor_arguments.spelled(thing.made, original)
    thing.steps_are_seen = True
    inner = given.get("schedulers")
    if inspection.is_a(inner, (list, tuple)):
        thing.schedules = [recorder.things.scheduler(each) for each in inspection.entries(inner)]
    if "lr_lambda" in given:
        thing.decay = constructor_arguments.base_of_power(thing.written.get("lr_lambda", ""))
        thing.arguments |= constructor_arguments.of_partial(given["lr_lambda"])
    text = source_map.source_of(thing.made.path).text
    thing.read_by_hand |= ".get_lr(" in text
    thing.stepped_names = vocabulary.steps_left_out(text)


def _by_function(thing: Scheduler, place: Location) -> None:
    """transformers makes its schedules by functions: `get_linear_schedule_with_warmup`."""
    if thing.kind == "LambdaLR":
        called, _ = source_map.callee_of(place)
        name = called.rpartition(".")[2]
        if name.startswith("get_"):
            thing.kind = name


def _get_lr(recorder: Recorder, original: Method[LRScheduler, P, R]) -> Method[LRScheduler, P, R]:
    """Whoever asks a schedule for its values may apply them himself: Ignite does so."""

    hub = recorder.hub

    def get_lr(self: LRScheduler, /, *args: P.args, **kwargs: P.kwargs) -> R:
        result = original(self, *args, **kwargs)
        # Once an epoch, it may be, and never while it is sampled; torch itself asks at each step.
        if hub.active and sys._getframe(1).f_globals is not _TORCHS:
            hub.guarded(_read, recorder, self)
        return result

    return get_lr


def _read(recorder: Recorder, scheduler: LRScheduler) -> None:
    if not recorder.track().quiet:
        recorder.things.scheduler(scheduler).read_by_hand = True


def _step(recorder: Recorder, original: Method[LRScheduler, P, R]) -> Method[LRScheduler, P, R]:
    hub = recorder.hub

    def step(self: LRScheduler, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if hub.timer.on and hub.timer.enter("scheduler"):
            return hub.timer.run("scheduler", step, self, *args, **kwargs)
        if not hub.sampling:
            # It may step once an epoch, long after the last turn that was looked at.
            hub.guarded(_wake, recorder, self)
            if not hub.sampling:
                return original(self, *args, **kwargs)
        track = hub.guarded(recorder.track)
        if track is None or track.quiet:
            return original(self, *args, **kwargs)
        count, before = inspection.held(self, "last_epoch"), hub.guarded(_rate, self)
        track.quiet = True  # a chain of schedules steps as one
        try:
            result = original(self, *args, **kwargs)
        finally:
            track.quiet = False
        frame = sys._getframe(1)
        given = args[0] if args else kwargs.get("metrics", kwargs.get("epoch"))
        hub.guarded(_stepped, recorder, self, given, count, before, frame)
        return result

    return step


def _wake(recorder: Recorder, scheduler: LRScheduler) -> None:
    """Look at a schedule's first steps, and ever more rarely at later ones."""
    hub = recorder.hub
    thing = recorder.things.objects.get(scheduler) or recorder.things.scheduler(scheduler)
    thing.calls_between_samples = count = thing.calls_between_samples + 1
    if count <= _FIRST or not count & (count - 1):
        hub.sample()


def _names(place: Location, frame: FrameType) -> dict[str, Any]:
    """How the metric is written, and what it was given before."""
    name = _written(place, frame)
    own = next(user_frames.frames_of_user(frame), None)
    return {"metric_name": name, "metric_origins": origins(name, own) if own is not None else ()}


def _written(place: Location, frame: FrameType) -> str:
    """How the metric is written: `scores["accuracy"]` for `scores[key]` with that key."""
    text = source_map.written(place, 0, "metrics", "epoch")
    node = ast.parse(text or "0", mode="eval").body
    if not isinstance(node, ast.Subscript) or isinstance(node.slice, ast.Constant):
        return text
    names = FrameNames(frame)
    try:
        key = value_of(node.slice, names.named)
    finally:
        names.forget()
    return f"{ast.unparse(node.value)}[{key!r}]" if type(key) is str else text


def _rate(scheduler: LRScheduler) -> float | None:
    """The first group's learning rate, relative to what the schedule began with."""
    base = inspection.entries(inspection.held(scheduler, "base_lrs"))
    optimizer = inspection.held(scheduler, "optimizer")
    if not base or optimizer is None or not optimizer.param_groups:
        return None
    rate, whole = (inspection.number(each) for each in (optimizer.param_groups[0]["lr"], base[0]))
    return rate / whole if rate is not None and whole else None


def _stepped(
    recorder: Recorder,
    scheduler: LRScheduler,
    given: Any,
    count: Any,
    before: float | None,
    frame: FrameType,
) -> None:
    metric = inspection.number(given)
    thing = recorder.things.scheduler(scheduler)
    if thing.first_count is None:
        thing.first_count = count
        definition = source_map.function_around(recorder.place(frame))
        thing.read_counts = _counts_read(scheduler) if count == 0 else frozenset()
        thing.only_drawn = definition is not None and only_draws(definition)
        if count == 0:
            thing.rates.append((0, 1.0 if before is None else before))
    thing.sampled_calls += 1
    position, rate = inspection.held(scheduler, "last_epoch"), _rate(scheduler)
    if thing.rates and len(thing.rates) < _RATES and type(position) is int and rate is not None:
        thing.rates.append((position, rate))
    if thing.first_count:
        # Its position was set, by hand or by the state of an earlier run.
        thing.attributes["last_epoch"] = thing.first_count
    recorder.emit(
        SchedulerStep,
        frame,
        lambda place, serial: {} if given is None else _names(place, frame),
        scheduler=thing,
        metric=metric,
    )


def _counts_read(scheduler: LRScheduler) -> frozenset[int]:
    """The whole numbers around a `LambdaLR`'s functions: one may be the epoch that a run resumes
    at."""
    given = inspection.held(scheduler, "lr_lambdas")
    functions = (
        [each for each in given if type(each) is FunctionType] if type(given) is list else []
    )
    values = [value for each in functions for _, value in inspection.closed_over(each)]
    values += [each.__globals__.get(name) for each in functions for name in each.__code__.co_names]
    return frozenset(value for value in values if type(value) is int and value > 0)
