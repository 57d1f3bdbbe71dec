"""Optimizers: their parameters, and the effects of a step."""

from __future__ import annotations

import ast

from trueloop.doctor.model.events import Event, Made, OptimizerStep, ZeroGrad
from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.optimizer_events import GroupAdded, RateSet
from trueloop.doctor.model.things import Model, Optimizer, Scaler, Tensor
from trueloop.doctor.static.interpreter.calls import enter, take_over
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.survey import last_name
from trueloop.doctor.static.interpreter.syntax import once, written
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Class,
    CombinedIterable,
    Constant,
    DictValue,
    Function,
    OpaqueObject,
    Parameters,
    Sequence,
    Unknown,
    Value,
    constant,
    things_in,
)
from trueloop.doctor.static.interpreter.warm_ups import in_first_turns
from trueloop.doctor.static.stubs.hooks import run_step_hooks
from trueloop.doctor.static.stubs.muon_parameters import held_whole

MUON = "torch.optim.Muon"
FOREIGN = (
    "transformers.AdamW", "transformers.optimization.AdamW", "transformers.Adafactor",
    "transformers.optimization.Adafactor", "apex.optimizers.FusedAdam", "apex.optimizers.FusedLAMB",
    "apex.optimizers.FusedSGD", "bitsandbytes.optim.*", "torch_optimizer.*", "lion_pytorch.Lion",
    "adabelief_pytorch.AdaBelief", "timm.optim.*", "pytorch_optimizer.*", "adamp.AdamP",
)  # fmt: skip


@calls("torch.optim.*", *FOREIGN)
def _optimizer(call: LibraryCall) -> Value:
    short = call.name.rpartition(".")[2]
    if not short[:1].isupper() and "create_optimizer" not in short:
        return call.unknown(*call.args)
    optimizer = Optimizer(kind=call.name, made=call.place, known=True)
    given = call.arg(0, "params") or call.arg(0, "model_or_params")
    if short == "create_optimizer":
        given = call.arg(1, "model") or given  # timm's older form: the options come first
    if given is None:
        optimizer.complete = False
    else:
        hold(call, optimizer, given)
        optimizer.groups = _groups(call, given)
    optimizer.arguments = {name: constant(value) for name, value in call.kwargs.items()}
    if call.name == MUON:
        optimizer.all_matrices_of = held_whole(call, given)
    if not (optimizer.models or optimizer.tensors):
        # This run's options have left nothing. Torch refuses that: a real run has something.
        optimizer.complete = False
    call.emit(Made, thing=optimizer)
    return optimizer


def _groups(call: LibraryCall, given: Value) -> list[list[Model]] | None:
    """The modules of each group, none for a group that may hold anything else."""
    groups = [given]
    if isinstance(given, Sequence) and any(isinstance(each, DictValue) for each in given.values):
        groups = given.values
        if given.open:
            return None
    found: list[list[Model]] = []
    for each in groups:
        group = Optimizer()
        hold(call, group, each)
        is_whole = group.complete and not group.partial and not group.tensors
        found.append(group.models if is_whole else [])
    return found if any(found) else None


def hold(call: LibraryCall, optimizer: Optimizer, given: Value | None, depth: int = 5) -> None:
    """Note which parameters an optimizer was given."""
    if isinstance(given, Parameters):
        optimizer.models += [each for each in given.models if each not in optimizer.models]
        optimizer.tensors += given.tensors
        optimizer.complete &= given.complete
        optimizer.partial |= given.part
    elif isinstance(given, Optimizer):
        take_over(optimizer, given)
    elif isinstance(given, Model):
        optimizer.models.append(given)
    elif isinstance(given, Tensor):
        if given.role == "parameter" and given.models:
            optimizer.partial = True
            optimizer.models += [each for each in given.models if each not in optimizer.models]
        optimizer.tensors.append(given)
    elif depth and isinstance(given, Sequence):
        for each in given.values:
            hold(call, optimizer, each, depth - 1)
        optimizer.complete &= not given.open or bool(given.values)
    elif depth and isinstance(given, DictValue):
        parts = given.entries.get("params")
        if parts is not None:
            hold(call, optimizer, parts, depth - 1)
        elif all(isinstance(value, Tensor) for value in given.entries.values()):
            for value in given.entries.values():
                hold(call, optimizer, value, depth - 1)
        else:
            optimizer.complete = False
    elif depth and isinstance(given, CombinedIterable):
        for source in given.sources:
            hold(call, optimizer, source, depth - 1)
    else:
        # Collected by code that was not understood: the modules that it was given are in it.
        optimizer.complete, optimizer.partial = False, True
        found = [thing for thing in things_in(given) if isinstance(thing, Model)]
        optimizer.models += [each for each in found if each not in optimizer.models]


@methods(Optimizer, "__init__")
def _super_init(call: LibraryCall) -> Value:
    """An optimizer of the user's own hands its parameters up."""
    given = call.arg(0, "params")
    if call.receiver.models:  # it is made already, and begins again
        call.emit(GroupAdded, optimizer=call.receiver)
    if given is None:
        call.receiver.complete = False
    else:
        hold(call, call.receiver, given)
    return NONE


@methods(Optimizer, "zero_grad")
def _zero_grad(call: LibraryCall) -> Value:
    own = _own(call)
    if own is not None:
        enter(call.machine, own, [call.receiver, *call.args], call.kwargs, call.node)
        return NONE
    call.emit(ZeroGrad, target=call.receiver)
    return NONE


@methods(Unknown, "zero_grad")
@methods(OpaqueObject, "zero_grad")
@methods(Constant, "zero_grad")  # `None`, where the branch that makes the model is not taken
def _zero_grad_of_somebody(call: LibraryCall) -> Value:
    """Whatever it is called on, gradients are cleared."""
    call.expose(call.receiver)
    key = call.machine.key(call.receiver)
    accumulating = any(call.machine.key(each) == key for each in call.machine.accumulating)
    call.emit(ZeroGrad, target=None, accumulating=accumulating)
    return NONE


@methods(Optimizer, "step_and_update_lr")
def _scheduled_step(call: LibraryCall) -> Value:
    """A step of the wrapper that "Attention is all you need" is often trained with."""
    given = (*call.args, *call.kwargs.values())
    scaler = next((each for each in given if isinstance(each, Scaler)), None)
    call.emit(OptimizerStep, optimizer=call.receiver, scaler=scaler)
    return NONE


@methods(Optimizer, "step")
def _step(call: LibraryCall) -> Value:
    closure = call.arg(0, "closure")
    given = closure is not None and not (isinstance(closure, Constant) and closure.value is None)
    result: Value = NONE
    note_own_step(call.receiver)
    if given and not call.receiver.known:
        call.receiver.own_step = True  # as likely as not one that clears by itself (SAM)
    own = _own(call)
    if own is not None and not any(each is call.receiver for each in call.machine.receivers):
        result, has_stepped = _run_own(call, own)
        if has_stepped:
            return result
    elif given:
        result = call.machine.call_value(closure, [], node=call.node)
    call.emit(OptimizerStep, optimizer=call.receiver, closure=given, spelled=spelled(call))
    if call.receiver.step_hooks:
        run_step_hooks(call, call.receiver)
    return result


def _run_own(call: LibraryCall, own: Function) -> tuple[Value, bool]:
    """Run a `step` of the user's; what it returns, and whether it calls a library's `step`."""
    m = call.machine
    watch, stepped = m.watch, False

    stack = tuple(place for place, _ in m.calls)

    def hear(event: Event) -> None:
        nonlocal stepped
        if isinstance(event, OptimizerStep):
            stepped = True
            if event.optimizer is call.receiver:  # `super().step()`: the loop's line is the step
                event.place, event.stack, event.spelled = call.place, stack, spelled(call)
        watch(event)

    m.watch = hear
    try:
        result = enter(m, own, [call.receiver, *call.args], call.kwargs, call.node)
    finally:
        m.watch = watch
    return result, stepped


def note_own_step(optimizer: Optimizer) -> None:
    """Note whether an optimizer of the user's class has a `step` that may clear gradients."""
    cls = optimizer.cls
    if isinstance(cls, Class) and isinstance(cls.lookup("step"), Function) and _may_clear(cls):
        optimizer.own_step = True


def _may_clear(cls: Class) -> bool:
    """The class of an optimizer of the user's clears or sets gradients itself, or computes them."""
    kinds = [each for each in cls.lineage() if isinstance(each, Class)]
    return any(
        _handles_gradients(function)
        for kind in kinds
        for function in (kind.node, *_functions_called(kind))
    )


def _functions_called(cls: Class) -> list[ast.AST]:
    """The functions of its file that a class calls, directly."""
    survey = cls.module.survey
    names = {last_name(each.func) for each in walk(cls.node) if isinstance(each, ast.Call)}
    return [each for name in sorted(names) for each in survey.functions.get(name, ())]


@once
def _handles_gradients(node: ast.AST) -> bool:
    for each in walk(node):
        if isinstance(each, ast.Attribute) and each.attr == "grad":
            if not isinstance(each.ctx, ast.Load):
                return True
        elif isinstance(each, ast.Call):
            name = last_name(each.func)
            if name in _CLEARING or (name == "zero_" and not _is_new(each.func, node)):
                return True
    return False


def _is_new(method: ast.expr, within: ast.AST) -> bool:
    """The method of a tensor that a call there has made, or of a part of it."""
    owner = method.value if isinstance(method, ast.Attribute) else method
    while isinstance(owner, ast.Subscript):
        owner = owner.value
    given = [
        each.value
        for each in walk(within)
        if isinstance(each, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == getattr(owner, "id", "") for t in each.targets)
    ]
    return bool(given) and all(isinstance(each, ast.Call) for each in given)


_CLEARING = frozenset({"zero_grad", "_foreach_zero_", "backward", "setattr", "grad"})


def spelled(call: LibraryCall) -> str:
    """The expression before the dot of a method's call, if it is a plain name or the entry of a
    constant key: `parts["critic"]`."""
    function = getattr(call.node, "func", None)
    owner = getattr(function, "value", None)
    inner = owner
    while isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Constant):
        inner = inner.value
    return written(owner) if owner and isinstance(inner, (ast.Name, ast.Attribute)) else ""


def _own(call: LibraryCall) -> Function | None:
    """A method of the user's own class, where the receiver has one."""
    cls = call.receiver.cls
    found = cls.lookup(call.name) if isinstance(cls, Class) else None
    return found if isinstance(found, Function) else None


@methods(Optimizer, "add_param_group")
def _add_param_group(call: LibraryCall) -> Value:
    given = call.arg(0, "param_group")
    hold(call, call.receiver, given)
    call.receiver.groups = None
    added = Optimizer()
    hold(call, added, given)
    call.emit(GroupAdded, optimizer=call.receiver, models=tuple(added.models))
    return NONE


def set_groups(m: Interpreter, optimizer: Optimizer, groups: Value, node: ast.AST) -> None:
    """`optimizer.param_groups = groups`. Those that are emptied are filled later."""
    if not isinstance(groups, Sequence) or groups.values or groups.open:
        m.emit(GroupAdded, node, optimizer=optimizer)


def set_in_group(
    m: Interpreter, group: DictValue, key: object, value: Value, node: ast.AST
) -> None:
    """`optimizer.param_groups[0]["params"] = list(model.parameters())`, or its `"lr"`."""
    holder = holder_of(group)
    if holder is not None and key == "lr":
        m.emit(RateSet, node, optimizer=holder, at_first=in_first_turns(m, node))
    elif holder is not None and key == "params":
        models = value.models if isinstance(value, Parameters) else []
        holder.models += [each for each in models if each not in holder.models]
        m.emit(GroupAdded, node, optimizer=holder, models=tuple(models))


def holder_of(group: Value) -> Optimizer | None:
    """The optimizer that a group, or its list of parameters, is of."""
    held = group.entries.get("params") if isinstance(group, DictValue) else group
    return held.holder if isinstance(held, Parameters) else None


@methods(Parameters, "extend", "append", "insert")
def _more_parameters(call: LibraryCall) -> Value:
    """`optimizer.param_groups[0]["params"].extend(head.parameters())`."""
    holder = call.receiver.holder
    if holder is not None:
        added = Optimizer()
        hold(call, added, call.args[-1] if call.args else None)
        holder.models += [each for each in added.models if each not in holder.models]
        call.emit(GroupAdded, optimizer=holder, models=tuple(added.models))
    return NONE


@methods(Optimizer, "train", "eval")
def _mode(call: LibraryCall) -> Value:
    """Schedule-free optimizers have modes."""
    return NONE


def param_groups(optimizer: Optimizer) -> Sequence:
    """`optimizer.param_groups`."""
    params = Parameters(
        list(optimizer.models), list(optimizer.tensors), optimizer.complete, holder=optimizer
    )
    group = DictValue({"params": params}, True)
    return Sequence("list", [group], True)
