"""Mixed precision and clipping: torch's own, and what Accelerate and Fabric do in its place."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass

from trueloop.doctor.model.events import (
    Backward,
    Clip,
    EscapedToUnknown,
    Made,
    OptimizerStep,
    ScalerUpdate,
    Unscale,
)
from trueloop.doctor.model.things import Model, Optimizer, Scaler, Tensor
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.syntax import written
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Class,
    CombinedIterable,
    DictValue,
    Function,
    LibraryName,
    OpaqueObject,
    Parameters,
    Sequence,
    Unknown,
    Value,
    constant,
    things_in,
)
from trueloop.doctor.static.stubs.hooks import run_step_hooks
from trueloop.doctor.static.stubs.manual_updates import hangs_on_scale
from trueloop.doctor.static.stubs.optimizers import hold, note_own_step, spelled
from trueloop.doctor.static.stubs.tensors import as_tensor, derive

# ------------------------------------------------------------------------------- scalers


@calls(
    "torch.amp.GradScaler",
    "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler",
    "torch.distributed.fsdp.ShardedGradScaler",
)
def _grad_scaler(call: LibraryCall) -> Value:
    """A scaler; `enabled` as far as this run has decided what it hangs on."""
    position = 4 if _first_is_scale(call) else 5
    scaler = Scaler(made=call.place, known=True, enabled=_is_on(call, position))
    scaler.switch = call.arg(position, "enabled")
    call.emit(Made, thing=scaler)
    return scaler


def _first_is_scale(call: LibraryCall) -> bool:
    """`torch.cuda.amp.GradScaler(2.0 ** 16)` has no device in front."""
    first = constant(call.arg(0))
    return isinstance(first, (int, float)) and not isinstance(first, bool)


def _is_on(call: LibraryCall, position: int) -> bool | None:
    value = call.arg(position, "enabled")
    if value is None:
        return None if call.open else True
    outcome, key, negated = call.machine.verdict(value)
    if outcome is None and key in call.machine.decided:
        return call.machine.decided[key] != negated
    return outcome


@methods(Scaler, "scale")
def _scale(call: LibraryCall) -> Value:
    return _scaled(call, call.arg(0, "outputs"))


def _scaled(call: LibraryCall, value: Value | None) -> Value:
    if isinstance(value, Sequence):
        values = [_scaled(call, each) for each in value.values]
        return Sequence(value.kind, values, value.open, value.made, value.turns)
    loss = as_tensor(call.machine, value, call.node)
    made = derive(call.machine, call.node, loss, keeps_loss=True)
    made.scaled_by = call.receiver
    made.divided, made.reduced = loss.divided, loss.reduced
    made.divided_by = loss.divided_by
    return made


@methods(Scaler, "unscale_")
def _unscale(call: LibraryCall) -> Value:
    given = call.arg(0, "optimizer")
    optimizer = given if isinstance(given, Optimizer) else None
    call.emit(Unscale, scaler=call.receiver, optimizer=optimizer)
    return NONE


@methods(Scaler, "step")
def _scaler_step(call: LibraryCall) -> Value:
    optimizer = call.arg(0, "optimizer")
    if not isinstance(optimizer, Optimizer):
        call.expose(*call.args, call.receiver)
        return call.unknown()
    note_own_step(optimizer)
    names = _called_in_class(call.machine)
    call.receiver.never_unscales = "scale" in names and "unscale_" not in names
    written = _argument(call)
    call.emit(
        OptimizerStep,
        optimizer=optimizer,
        scaler=call.receiver,
        spelled=written,
        scaler_spelled=spelled(call),
    )
    return NONE


def _called_in_class(m: Interpreter) -> set[str]:
    """Last parts of the names that the methods of the class around this call."""
    cls = getattr(m.receivers[-1], "cls", None) if m.receivers else None
    return {
        name
        for kind in (cls.lineage() if isinstance(cls, Class) else ())
        if isinstance(kind, Class)
        for method in kind.namespace.values()
        if isinstance(method, Function)
        and (contents := method.module.survey.contents.get(id(method.node)))  # none of a lambda
        for name in contents.names
    }


def _argument(call: LibraryCall) -> str:
    """How the first argument of a call is written, where that is a plain name."""
    given = getattr(call.node, "args", None)
    if given and isinstance(given[0], (ast.Name, ast.Attribute)):
        return written(given[0])
    return ""


@methods(Scaler, "update")
def _update(call: LibraryCall) -> Value:
    call.emit(ScalerUpdate, scaler=call.receiver)
    return NONE


@methods(Scaler, "is_enabled")
def _is_enabled(call: LibraryCall) -> Value:
    """The value that it was made with, or one unknown: the same each time."""
    given: Value | None = call.receiver.switch
    if isinstance(given, Unknown) or (given is not None and constant(given) is False):
        return given
    return call.machine.unknown(call.node, key=f"{call.machine.key(call.receiver)}.is_enabled()")


@methods(Scaler, "get_growth_interval", "get_growth_factor",
         "_found_inf_per_device", "_check_inf_per_device")  # fmt: skip
def _ask(call: LibraryCall) -> Value:
    return call.unknown()


@methods(Scaler, "get_scale", "_get_scale_async")
def _scale_asked(call: LibraryCall) -> Value:
    """A number that remembers the scaler: see `hangs_on_scale`."""
    found = call.unknown(call.receiver)
    found.number = True
    return found


@dataclass(eq=False, kw_only=True)
class WholeScaler(Scaler):
    """timm's `NativeScaler`: one call makes the whole update."""


@calls("timm.utils.NativeScaler", "timm.utils.cuda.NativeScaler", "timm.utils.ApexScaler")
def _native_scaler(call: LibraryCall) -> Value:
    return WholeScaler(made=call.place, known=True)


@methods(WholeScaler, "__call__")
def _whole_update(call: LibraryCall) -> Value:
    loss, optimizer = call.arg(0, "loss"), call.arg(1, "optimizer")
    scaled = as_tensor(call.machine, _scaled(call, loss), call.node)
    call.emit(Backward, loss=scaled, create_graph=None, by="scaler")
    if not isinstance(optimizer, Optimizer):
        call.expose(*call.args, *call.kwargs.values())
        return NONE
    call.emit(Unscale, scaler=call.receiver, optimizer=optimizer)
    call.emit(OptimizerStep, optimizer=optimizer, scaler=call.receiver)
    run_step_hooks(call, optimizer)
    call.emit(ScalerUpdate, scaler=call.receiver)
    return NONE


@calls("apex.amp.initialize")
def _apex_initialize(call: LibraryCall) -> Value:
    """It hands back what it was given, made fit for float16."""
    given = [call.arg(0, "models"), call.arg(1, "optimizers")]
    return Sequence("tuple", [each for each in given if each is not None])


@calls("apex.amp.scale_loss")
def _apex_scale_loss(call: LibraryCall) -> Value:
    """`with amp.scale_loss(loss, optimizer) as scaled_loss`: unscaled again when it is left."""
    return OpaqueObject("apex.amp.scale_loss", entered=call.arg(0, "loss", call.unknown()))


@calls("apex.amp.master_params")
def _apex_master_params(call: LibraryCall) -> Value:
    optimizer = call.arg(0)
    if isinstance(optimizer, Optimizer):
        return Parameters(list(optimizer.models), list(optimizer.tensors), optimizer.complete)
    return call.unknown(*call.args)


# ------------------------------------------------------------------------------- clipping


@calls("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_norm")
def _clip_norm(call: LibraryCall) -> Value:
    return _clip(call, call.arg(0, "parameters"), call.arg(1, "max_norm"), "norm")


@calls("torch.nn.utils.clip_grad_value_")
def _clip_value(call: LibraryCall) -> Value:
    return _clip(call, call.arg(0, "parameters"), call.arg(1, "clip_value"), "value")


def _clip(
    call: LibraryCall,
    given: Value | None,
    limit: Value | None,
    by: str,
    optimizer: Value | None = None,
) -> Value:
    found = Optimizer(known=True)
    hold(call, found, given)
    if isinstance(given, Parameters):
        found.complete = given.complete and not given.part
    holder = optimizer if isinstance(optimizer, Optimizer) else _holder(given)
    call.emit(
        Clip,
        models=found.models,
        complete=found.complete and bool(found.models),
        optimizer=holder,
        by=by,
        limit=_limit(limit),
        times_scale=hangs_on_scale(limit),
        result_used=call.result_used,
    )
    return call.unknown()


def _limit(value: Value | None) -> float | None:
    if isinstance(value, LibraryName) and value.name.rpartition(".")[2] in ("inf", "Inf", "infty"):
        return math.inf
    found = constant(value)
    if isinstance(found, str):
        return math.inf if found.strip("+").lower().startswith("inf") else None
    return found if isinstance(found, (int, float)) else None


def _holder(value: object, depth: int = 4) -> Optimizer | None:
    """The optimizer whose `param_groups` are meant."""
    if isinstance(value, (Parameters, Tensor)):
        return value.holder
    if not depth:
        return None
    parts: list[Value] = []
    if isinstance(value, Sequence):
        parts = value.values
    elif isinstance(value, CombinedIterable):
        parts = value.sources
    elif isinstance(value, DictValue):
        parts = list(value.entries.values())
    for part in parts:
        found = _holder(part, depth - 1)
        if found is not None:
            return found
    return None


@methods(Model, "clip_grad_norm_")
def _sharded_clip(call: LibraryCall) -> Value:
    """FullyShardedDataParallel clips by itself."""
    parameters = Parameters([call.receiver])
    return _clip(call, parameters, call.arg(0, "max_norm"), "norm")


@methods(Unknown, "clip_grad_norm_", "clip_grad_value_")
def _foreign_clip(call: LibraryCall) -> Value:
    """`accelerator.clip_grad_norm_(...)`, of an object that is not known."""
    by = "norm" if "norm" in call.name else "value"
    return _clip(call, call.arg(0, "parameters"), call.arg(1), by)


# ------------------------------------------------------------------------------- hooks


@methods(Tensor, "register_post_accumulate_grad_hook")
def _hook(call: LibraryCall) -> Value:
    """Code that runs within backward: it may step the optimizer and clear the gradient there."""
    models = [*call.receiver.models]
    call.emit(EscapedToUnknown, things=models, callee=call.name)
    return call.unknown()


@calls("torch_xla.core.xla_model.optimizer_step")
def _xla_step(call: LibraryCall) -> Value:
    optimizer = call.arg(0, "optimizer")
    if isinstance(optimizer, Optimizer):
        call.emit(OptimizerStep, optimizer=optimizer, spelled=_argument(call))
    return NONE


# ------------------------------------------------------------------------------- Accelerate, Fabric


@dataclass(eq=False, slots=True)
class Accelerator(OpaqueObject):
    """`accelerate.Accelerator` or Lightning's `Fabric`: with their own backward and clipping."""


@calls(
    "accelerate.Accelerator",
    "accelerate.accelerator.Accelerator",
    "lightning.Fabric",
    "lightning.fabric.Fabric",
    "lightning.fabric.fabric.Fabric",
)
def _accelerator(call: LibraryCall) -> Value:
    return Accelerator(call.name, dict(call.kwargs), key=f"accelerator@{call.place.line}")


@methods(
    Accelerator,
    "prepare",
    "prepare_model",
    "prepare_optimizer",
    "prepare_scheduler",
    "prepare_data_loader",
    "setup",
    "setup_module",
    "setup_optimizers",
    "setup_dataloaders",
)
def _prepare(call: LibraryCall) -> Value:
    """Its arguments come back wrapped, in the same order."""
    for thing in things_in(Sequence("list", call.args)):
        if isinstance(thing, Optimizer):
            thing.prepared = call.receiver.kind
    if len(call.args) == 1 and not call.open:
        return call.args[0]
    return Sequence("tuple", list(call.args), call.open)


@methods(Accelerator, "backward")
def _accelerated_backward(call: LibraryCall) -> Value:
    loss = as_tensor(call.machine, call.arg(0, "loss") or call.arg(0, "tensor"), call.node)
    undivided = call.receiver.kind.endswith("Fabric") and not _may_be_engine(call.receiver)
    call.emit(Backward, loss=loss, create_graph=None, by="foreign", undivided=undivided)
    return NONE


def _may_be_engine(fabric: Accelerator) -> bool:
    """DeepSpeed's engine accumulates by itself."""
    strategy = fabric.arguments.get("strategy")
    known = constant(strategy)
    return strategy is not None and (not isinstance(known, str) or "deepspeed" in known)


@methods(Model, "manual_backward")
def _manual_backward(call: LibraryCall) -> Value:
    """Lightning's manual optimization: accumulation is the user's own there."""
    loss = as_tensor(call.machine, call.arg(0, "loss"), call.node)
    call.emit(Backward, loss=loss, create_graph=None, by="foreign", undivided=True)
    return NONE


@methods(Model, "clip_gradients")
def _lightning_clip(call: LibraryCall) -> Value:
    """`self.clip_gradients(optimizer, gradient_clip_val=..., gradient_clip_algorithm=...)`."""
    optimizer = call.arg(0, "optimizer")
    if not isinstance(optimizer, Optimizer):
        return call.unknown()
    limit = call.arg(1, "gradient_clip_val")
    by = "value" if call.const(2, "gradient_clip_algorithm") == "value" else "norm"
    return _clip(call, Parameters(list(optimizer.models)), limit, by, optimizer)


@methods(Accelerator, "clip_grad_norm_", "clip_grad_value_")
def _accelerated_clip(call: LibraryCall) -> Value:
    """It unscales by itself, as far as there is a scaler."""
    by = "norm" if "norm" in call.name else "value"
    return _clip(call, call.arg(0, "parameters"), call.arg(1), by)


@methods(Accelerator, "clip_gradients")
def _fabric_clip(call: LibraryCall) -> Value:
    """`fabric.clip_gradients(module, optimizer, clip_val=..., max_norm=...)`."""
    norm = call.arg(3, "max_norm")
    limit = norm if norm is not None else call.arg(2, "clip_val")
    by = "value" if norm is None else "norm"
    return _clip(call, call.arg(0, "module"), limit, by, call.arg(1, "optimizer"))


@methods(Accelerator, "accumulate")
def _accumulating(call: LibraryCall) -> Value:
    """Whether windows have several micro-batches is an argument of the constructor."""
    given = call.receiver.arguments
    several = "gradient_accumulation_steps" in given or "gradient_accumulation_plugin" in given
    return OpaqueObject("contextlib.nullcontext", accumulates=call.arg(0) if several else None)


@methods(
    Accelerator,
    *"no_sync no_backward_sync autocast profile init_module".split(),
    *"split_between_processes main_process_first local_main_process_first rank_zero_first".split(),
)
def _context(call: LibraryCall) -> Value:
    """Blocks that change nothing that rules ask about; whether autocast is on is configured."""
    return OpaqueObject("contextlib.nullcontext")


@methods(
    Accelerator,
    *"unwrap_model gather gather_for_metrics reduce pad_across_processes to_device".split(),
    *"all_gather all_reduce broadcast skip_first_batches".split(),
)
def _first(call: LibraryCall) -> Value:
    return call.arg(0, "", call.unknown())


@methods(
    Accelerator,
    *"print log log_dict wait_for_everyone barrier launch save save_model save_state".split(),
    *"load_state load init_trackers end_training get_state_dict free_memory".split(),
    *"register_for_checkpointing seed_everything".split(),
)
def _harmless(call: LibraryCall) -> Value:
    return call.unknown() if call.result_used else NONE
