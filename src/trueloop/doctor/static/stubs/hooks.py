"""Hooks around a module's `forward`, when the module itself is called, and after a `step`."""

from __future__ import annotations

from trueloop.doctor.model.events import HookSet, Used
from trueloop.doctor.model.things import Model, Optimizer
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.values import (
    NONE,
    DictValue,
    OpaqueObject,
    Sequence,
    Value,
)

CHECKPOINTING = "transformers.PreTrainedModel.gradient_checkpointing_enable"
_HANDLE = "torch.utils.hooks.RemovableHandle"


def _handle(call: LibraryCall, model: Model | None) -> Value:
    short = call.name.rpartition(".")[2]
    call.emit(HookSet, model=model, by=short)
    return OpaqueObject(_HANDLE, {"module": model} if model is not None else {}, made=call.place)


@methods(Model, "register_forward_hook", "register_forward_pre_hook")
def _register(call: LibraryCall) -> Value:
    return _handle(call, call.receiver)


@calls("torch.nn.modules.module.register_module_forward_hook",
       "torch.nn.modules.module.register_module_forward_pre_hook")  # fmt: skip
def _register_for_all(call: LibraryCall) -> Value:
    return _handle(call, None)


@methods(Optimizer, "register_step_post_hook")
def _register_after_step(call: LibraryCall) -> Value:
    hook = call.arg(0, "hook")
    if hook is not None:
        call.receiver.step_hooks.append(hook)
    return OpaqueObject(_HANDLE, {"optimizer": call.receiver}, made=call.place)


def run_step_hooks(call: LibraryCall, optimizer: Optimizer) -> None:
    for hook in optimizer.step_hooks:
        given = [optimizer, Sequence("tuple", []), DictValue({})]
        call.machine.call_value(hook, given, node=call.node)


@methods(OpaqueObject, "remove")
def _remove(call: LibraryCall) -> Value:
    owner: OpaqueObject = call.receiver
    if owner.kind == _HANDLE:
        optimizer = owner.arguments.get("optimizer")
        if isinstance(optimizer, Optimizer):
            optimizer.step_hooks.clear()
            return NONE
        model = owner.arguments.get("module")
        call.emit(HookSet, model=model if isinstance(model, Model) else None, removed=True)
        return NONE
    return call.unknown(owner, *call.args)


@methods(Model, "compile")
def _compiled_in_place(call: LibraryCall) -> Value:
    """`module(x)` runs the compiled code; `module.forward(x)` does not."""
    call.emit(HookSet, model=call.receiver, by="compile")
    return NONE


@methods(Model, "gradient_checkpointing_enable")
def _checkpoints(call: LibraryCall) -> Value:
    """Of transformers: its layers ask for train mode as well."""
    call.emit(Used, what=CHECKPOINTING, subject=call.receiver)
    return NONE


@calls("torch.nn.utils.spectral_norm", "torch.nn.utils.prune.*")
def _recomputed(call: LibraryCall) -> Value:
    """A hook computes the weight again, or masks it, before each call."""
    module = call.arg(0, "module")
    if isinstance(module, Model) and not call.name.endswith(("remove", "is_pruned")):
        call.emit(HookSet, model=module, by=call.name.rpartition(".")[2])
    return module if module is not None else call.unknown()
