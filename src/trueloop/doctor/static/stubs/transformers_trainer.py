"""transformers' Trainer: its constructor, and the methods that a subclass calls."""

from __future__ import annotations

import ast

from trueloop.doctor.static.interpreter import trainer_loop
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Class,
    LibraryName,
    OpaqueObject,
    TrainerObject,
    Value,
)

_ARGUMENTS = (
    "model args data_collator train_dataset eval_dataset processing_class model_init"
    " compute_loss_func compute_metrics callbacks optimizers".split()
)


@calls("transformers.Trainer", "transformers.Seq2SeqTrainer", "transformers.trainer.Trainer",
       "transformers.trainer_seq2seq.Seq2SeqTrainer")  # fmt: skip
def _trainer(call: LibraryCall) -> Value:
    """`transformers.Trainer(...)` itself, not a subclass of the user's."""
    text = ast.ClassDef("Trainer", [], [], [], [], lineno=call.place.line, col_offset=0)
    cls = Class(text, call.machine.modules[-1], "Trainer", [LibraryName(call.name)], {})
    made = TrainerObject(cls, key=f"trainer@{call.place.line}")
    _fill(call, made)
    return made


@methods(TrainerObject, "__init__")
def _init(call: LibraryCall) -> Value:
    _fill(call, call.receiver)
    return NONE


def _fill(call: LibraryCall, made: TrainerObject) -> None:
    """Its arguments become its attributes, and may be used in ways that are not seen."""
    call.machine.expose([*call.args, *call.kwargs.values()], "transformers.Trainer", call.node)
    for position, name in enumerate(_ARGUMENTS):
        value = call.arg(position, name)
        if value is not None:
            made.attributes[name] = value
    if call.open and "model" not in made.attributes:
        made.attributes["args"] = call.unknown()


@methods(TrainerObject, "train")
def _train(call: LibraryCall) -> Value:
    trainer_loop.train(call.machine, call.receiver, call.node)
    return call.unknown()


@methods(TrainerObject, "evaluate", "predict")
def _evaluate(call: LibraryCall) -> Value:
    trainer: TrainerObject = call.receiver
    if not trainer.running:
        call.expose(*call.args, *call.kwargs.values(), trainer.attributes.get("model", NONE))
    return call.unknown()


@methods(TrainerObject, "training_step")
def _training_step(call: LibraryCall) -> Value:
    """`super().training_step(model, inputs)`."""
    model, batch = _given(call)
    return trainer_loop.training_step(call.machine, call.receiver, model, batch, call.node)


@methods(TrainerObject, "compute_loss")
def _compute_loss(call: LibraryCall) -> Value:
    """`super().compute_loss(model, inputs, return_outputs)`."""
    model, batch = _given(call)
    found = trainer_loop.default_loss(call.machine, call.receiver, model, batch, call.node)
    wanted = call.const(2, "return_outputs", False, None)
    if wanted is False:
        return found
    return call.unknown(found)


@methods(TrainerObject, "prediction_step")
def _prediction_step(call: LibraryCall) -> Value:
    model, batch = _given(call)
    found = trainer_loop.prediction_step(call.machine, call.receiver, model, batch, call.node)
    return call.unknown(found)


def _given(call: LibraryCall) -> tuple[Value, Value]:
    return call.arg(0, "model", call.unknown()), call.arg(1, "inputs", call.unknown())


@methods(TrainerObject, "_prepare_inputs", "_wrap_model")
def _first(call: LibraryCall) -> Value:
    return call.arg(0, "", call.unknown())


@methods(TrainerObject, "compute_loss_context_manager", "autocast_smart_context_manager")
def _context(call: LibraryCall) -> Value:
    return OpaqueObject("contextlib.nullcontext")


@methods(TrainerObject, "create_optimizer", "create_scheduler", "log", "log_metrics",
         "save_metrics", "save_state", "save_model", "is_world_process_zero",
         "is_local_process_zero", "add_callback", "pop_callback", "remove_callback",
         "get_train_dataloader", "get_eval_dataloader", "get_decay_parameter_names",
         "create_optimizer_and_scheduler", "push_to_hub", "num_examples")  # fmt: skip
def _harmless(call: LibraryCall) -> Value:
    name = {"create_optimizer": "optimizer", "create_scheduler": "lr_scheduler"}.get(call.name, "")
    return call.receiver.attributes.get(name) or call.unknown()
