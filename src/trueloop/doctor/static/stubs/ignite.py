"""Ignite: engines, their handlers, and schedules that events step."""

from __future__ import annotations

from trueloop.doctor.model.things import Scheduler
from trueloop.doctor.static.interpreter.ignite_loop import (
    AttachedSchedule,
    Engine,
    EventDecorator,
    SupervisedStep,
    run,
)
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.syntax import written
from trueloop.doctor.static.interpreter.values import NONE, Constant, Unknown, Value


def _engine(call: LibraryCall, step: Value) -> Engine:
    made = Engine("ignite.engine.Engine", key=f"engine@{call.place.line}", step=step)
    made.node = call.node
    call.machine.reach.engines.append(made)
    return made


@calls("ignite.engine.Engine", "ignite.engine.engine.Engine")
def _made(call: LibraryCall) -> Value:
    return _engine(call, call.arg(0, "process_function", call.unknown()))


@calls("ignite.engine.create_supervised_trainer")
def _trainer(call: LibraryCall) -> Value:
    return _engine(call, _training_step(call))


@calls("ignite.engine.create_supervised_evaluator")
def _evaluator(call: LibraryCall) -> Value:
    return _engine(call, _evaluation_step(call))


@calls("ignite.engine.supervised_training_step", "ignite.engine.supervised_training_step_amp")
def _training_step(call: LibraryCall) -> SupervisedStep:
    nothing = call.unknown()
    return SupervisedStep(
        call.arg(0, "model", nothing),
        call.arg(1, "optimizer", nothing),
        call.arg(2, "loss_fn", nothing),
        call.node,
    )


@calls("ignite.engine.supervised_evaluation_step", "ignite.engine.supervised_evaluation_step_amp")
def _evaluation_step(call: LibraryCall) -> SupervisedStep:
    return SupervisedStep(call.arg(0, "model", call.unknown()), None, NONE, call.node)


@methods(Engine, "on")
def _on(call: LibraryCall) -> Value:
    """`@trainer.on(Events.EPOCH_COMPLETED)`."""
    event = call.arg(0, "event_name", call.unknown())
    return EventDecorator(call.receiver, event, call.args[1:], call.kwargs, call.node)


@methods(Engine, "add_event_handler")
def _add_handler(call: LibraryCall) -> Value:
    event = call.arg(0, "event_name", call.unknown())
    handler = call.arg(1, "handler", call.unknown())
    kwargs = {
        name: value for name, value in call.kwargs.items() if name not in ("event_name", "handler")
    }
    call.receiver.listen(call.machine, event, handler, call.args[2:], kwargs, call.node)
    return call.unknown()


@methods(Engine, "run")
def _run(call: LibraryCall) -> Value:
    data = call.arg(0, "data", Unknown("data"))
    epochs = call.arg(1, "max_epochs", Constant(1))
    nodes = [*getattr(call.node, "args", ())]
    nodes += [each.value for each in getattr(call.node, "keywords", ()) if each.arg == "data"]
    over = written(nodes[0]) if nodes else ""
    length = call.arg(2, "epoch_length")
    engine: Engine = call.receiver
    run(call.machine, engine, data, epochs, length, call.node, over)
    return engine.attributes.get("state", call.unknown())


@methods(Engine, "terminate", "terminate_epoch", "interrupt", "register_events", "set_data",
         "fire_event", "load_state_dict", "state_dict", "has_event_handler",
         "remove_event_handler", "debug")  # fmt: skip
def _harmless(call: LibraryCall) -> Value:
    return call.unknown()


@calls(*(f"ignite.{place}.LRScheduler" for place in (
    "handlers", "handlers.param_scheduler", "contrib.handlers", "contrib.handlers.param_scheduler",
)))  # fmt: skip
def _schedule(call: LibraryCall) -> Value:
    """It takes a schedule of torch's over."""
    given = call.arg(0, "lr_scheduler")
    schedule = given if isinstance(given, Scheduler) else None
    if schedule is not None:
        schedule.stepped_by = "Ignite"
        schedule.exposed = True
    return AttachedSchedule(call.name, key=f"schedule@{call.place.line}", schedule=schedule)


@calls("ignite.distributed.auto_model", "ignite.distributed.auto_optim",
       "ignite.distributed.auto.auto_model", "ignite.distributed.auto.auto_optim")  # fmt: skip
def _adapted(call: LibraryCall) -> Value:
    return call.arg(0, "", next(iter(call.kwargs.values()), call.unknown()))
