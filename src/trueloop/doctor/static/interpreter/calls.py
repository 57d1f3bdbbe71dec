"""Calls: entering the user's own functions and classes, and asking the library about the rest."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from trueloop.doctor.model.events import Made
from trueloop.doctor.model.things import (
    Dataset,
    Model,
    Optimizer,
    Sampler,
    Scheduler,
    Tensor,
    Thing,
)
from trueloop.doctor.static.interpreter.branches import as_chosen, is_chosen
from trueloop.doctor.static.interpreter.call_summaries import summarized
from trueloop.doctor.static.interpreter.derived_containers import container_in
from trueloop.doctor.static.interpreter.fetches import note_fetch
from trueloop.doctor.static.interpreter.interpreter import CallRecord, ControlFlow, Interpreter
from trueloop.doctor.static.interpreter.methods_of_constants import method_of_constant
from trueloop.doctor.static.interpreter.parameter_binding import bind_parameters, is_refused
from trueloop.doctor.static.interpreter.passing_generators import passed_on
from trueloop.doctor.static.interpreter.repeated_constructors import construct
from trueloop.doctor.static.interpreter.step_budget import ProgramFailsError
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, find_call, find_method
from trueloop.doctor.static.interpreter.survey import BACKWARD, last_name
from trueloop.doctor.static.interpreter.syntax import nodes_of, once
from trueloop.doctor.static.interpreter.user_objects import new_object
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Class,
    Constant,
    DictValue,
    Function,
    Generator,
    GeneratorContext,
    Instance,
    LibraryMethod,
    LibraryName,
    Method,
    OpaqueObject,
    Scope,
    Sequence,
    TrainerObject,
    Unknown,
    Value,
    kept,
)
from trueloop.doctor.static.interpreter.windowing_generators import windows_of
from trueloop.doctor.static.interpreter.with_blocks import inside_foreign
from trueloop.doctor.static.stubs import arrays, statistics, tensor_shapes as shapes
from trueloop.doctor.static.stubs.manual_updates import clears_by_name
from trueloop.doctor.static.stubs.tensors import call_foreign_method, derive

HARMLESS = frozenset(
    "torch numpy builtins logging tqdm os sys time math json random wandb matplotlib PIL pandas"
    " sklearn torchmetrics tensorboard tensorboardX rich warnings datetime pathlib collections"
    " itertools functools string re argparse typing pprint pickle csv yaml loguru mlflow shutil"
    " torchvision torchaudio torchinfo torchsummary thop fvcore evaluate seaborn plotly scipy"
    " contextlib copy gc glob object operator textwrap tabulate absl cv2 einops".split()
)
"""Libraries whose functions do nothing to a model or an optimizer that they are given."""


def call(
    m: Interpreter,
    function: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    rest: list[Value] | None = None,
) -> Value:
    """Call a value. `rest`: what was spread into the call (`*args`) and is not known."""
    result = _call(m, function, args, kwargs, node, rest)
    if m.turns and not m.inside_models:
        note_fetch(m, function, [*args, *kwargs.values()], result)
    return result


def _call(
    m: Interpreter,
    function: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    rest: list[Value] | None,
) -> Value:
    m.spend(1, node)
    if isinstance(node, ast.Call) and last_name(node.func) in BACKWARD:
        m.backwards.add(id(node.func))
    if m.noted is not None:
        m.noted.append(CallRecord(function, args, kwargs, m.place(node), tuple(m.functions)))
    if type(function) is LibraryName:
        return _library(m, function.name, args, kwargs, node, rest)
    if type(function) is LibraryMethod:
        return _method(m, function, args, kwargs, node, rest)
    if isinstance(function, Function):
        return start(m, function, args, kwargs, node, rest)
    if isinstance(function, Method):
        return start(m, function.function, [function.receiver, *args], kwargs, node, rest)
    if isinstance(function, Class):
        return instantiate(m, function, args, kwargs, node, rest)
    if type(function) is OpaqueObject and function.call:  # `partial(nn.BatchNorm2d)(n, 0.8)`
        args, kwargs = [*function.call[1:], *args], {**function.arguments, **kwargs}
        return _call(m, function.call[0], args, kwargs, node, rest)
    if isinstance(function, (Instance, Thing)):
        known = find_method(function, "__call__")
        mine = getattr(function, "cls", None)
        if not isinstance(function, Model) and isinstance(mine, Class):
            found = mine.lookup("__call__")
            if isinstance(found, Function):
                return start(m, found, [function, *args], kwargs, node, rest)
        if known is not None:
            return known(LibraryCall(m, node, "__call__", args, kwargs, function, rest is not None))
    return _foreign(m, function, args, kwargs, node, rest)


def _library(
    m: Interpreter,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    rest: list[Value] | None,
) -> Value:
    known = find_call(name)
    if known is not None:
        return known(LibraryCall(m, node, name, args, kwargs, None, rest is not None, rest or ()))
    everything = [*args, *kwargs.values(), *(rest or [])]
    clears_by_name(m, name, node)
    head, _, last = name.rpartition(".")
    if head.partition(".")[0] not in HARMLESS:
        m.expose(everything, name, node)
    if last[:1].isupper():
        named = {str(i): arg for i, arg in enumerate(args)} | kwargs
        return OpaqueObject(name, named, key=f"{last}()@{getattr(node, 'lineno', 0)}")
    found = m.unknown(node, everything)
    arrays.notice(m, name, args, kwargs, found)
    return found


def _method(
    m: Interpreter,
    bound: LibraryMethod,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    rest: list[Value] | None,
) -> Value:
    receiver, name = bound.receiver, bound.name
    known = find_method(receiver, name)
    if known is not None:
        if name in _CHANGES and isinstance(receiver, (Sequence, DictValue)):
            m.history.write(receiver)
        is_open = rest is not None
        return known(LibraryCall(m, node, name, args, kwargs, receiver, is_open, rest or ()))
    everything = [*args, *kwargs.values(), *(rest or [])]
    m.reach.unresolved.add(name)
    if name in BACKWARD:
        m.graph_escapes(name, node)  # of a loss that is None in this run, or of anything else
    if isinstance(receiver, Tensor):
        parents = [each for each in (receiver, *args) if isinstance(each, Tensor)]
        made = derive(m, node, *parents, graph=name not in shapes.WITHOUT_GRADIENT)
        made.shape = shapes.of_method(name, receiver.shape, args, kwargs)
        made.dtype = shapes.dtype_of(name, receiver.dtype)
        statistics.notice(m, receiver, name, args, kwargs, made)
        return made
    if isinstance(receiver, Constant):
        return method_of_constant(m, receiver, name, args, kwargs, node)
    if isinstance(receiver, LibraryName):
        return _library(m, f"{receiver.name}.{name}", args, kwargs, node, rest)
    if not isinstance(receiver, (Sequence, DictValue)):
        harmless = (
            isinstance(receiver, OpaqueObject) and receiver.kind.partition(".")[0] in HARMLESS
        ) or _is_average(receiver, name)
        if not harmless:
            # `optimizer.step_and_update_lr()`: what an optimizer of somebody's own does to itself.
            own = isinstance(receiver, Optimizer) and name not in _OF_OPTIMIZERS
            # `model.get_grads()`: what a module of somebody's own does with its gradients.
            own |= isinstance(receiver, Model) and "grad" in name and "checkpoint" not in name
            m.expose([*everything, receiver] if own else everything, name, node)
        clears_by_name(m, name, node)
    if isinstance(receiver, Model):
        if not receiver.kind.startswith("torch.nn."):
            m.graph_escapes(name, node, frozenset({receiver}))
        return call_foreign_method(m, receiver, name, everything, node)
    found = m.unknown(node, [receiver, *everything])
    arrays.notice_method(m, receiver, name, args, kwargs, found)
    found.number = isinstance(receiver, Unknown) and receiver.number
    return found


def _is_average(receiver: Value, name: str) -> bool:
    """`ema.step(model.parameters())`: weights are read for their average."""
    if name not in _OF_AVERAGES or not isinstance(receiver, OpaqueObject | Model):
        return False
    return _AVERAGE.search(receiver.kind.rpartition(".")[2]) is not None


_AVERAGE = re.compile(r"^(EMA|Ema|Exponential)|MovingAverage|(EMA|Ema)$")
_OF_AVERAGES = frozenset({"step", "update"})
_CHANGES = frozenset("insert clear pop popleft setdefault update".split())
"""Methods of containers that change them, beside those that make them longer."""
_OF_OPTIMIZERS = frozenset(
    "add_param_group state_dict train eval register_step_pre_hook register_step_post_hook"
    " share_memory get_lr __repr__".split()
)
"""Methods of optimizers that neither step nor clear."""


def _foreign(
    m: Interpreter,
    function: Any,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    rest: list[Value] | None,
) -> Value:
    everything = [*args, *kwargs.values(), *(rest or [])]
    if isinstance(node, ast.Call):
        m.reach.unresolved.add(last_name(node.func))
    clears_by_name(m, m.key(function), node)
    untouched = Tensor if _is_plain_choice(function) else ()
    given = [each for each in everything if not isinstance(each, untouched)]
    m.expose([*given, function], m.key(function), node)
    owner = function.of if isinstance(function, Unknown) else ()
    found = m.unknown(node, [function, *owner, *everything])
    if owner and isinstance(node, ast.Call):
        arrays.notice_method(m, owner[0], last_name(node.func), args, kwargs, found)
        found.number = not everything and last_name(node.func) == "item"
    return found


def _is_plain_choice(function: Value | None) -> bool:
    """One of several functions in a table, `POOLING[name]`, none of which takes a gradient."""
    of = function.of if isinstance(function, Unknown) else ()
    if len(of) != 1 or not isinstance(of[0], DictValue) or of[0].open:
        return False
    several = of[0].entries.values()
    return bool(several) and all(
        isinstance(each, Function) and not any(each.module.survey.trains(each.name))
        for each in several
    )


# ------------------------------------------------------------------------------- the user's own


def start(
    m: Interpreter,
    function: Function,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    rest: list[Value] | None = None,
) -> Value:
    """Call a function of the user's: enter it, or put it off if it is a generator."""
    contents = function.module.survey.contents.get(id(function.node))
    if contents is not None and contents.yields:
        if any("contextmanager" in m.key(each) for each in function.decorators):
            return GeneratorContext(function, args, kwargs)
        known = passed_on(m, function, args, kwargs) or windows_of(m, function, args, kwargs)
        return known or Generator(function, args, kwargs)
    return enter(m, function, args, kwargs, node, rest=rest)


def enter(
    m: Interpreter,
    function: Function,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    *,
    rest: list[Value] | None = None,
    on_yield: Callable[[Value], Value] | None = None,
) -> Value:
    """Run the body of a function of the user's; what it returns."""
    definition = function.node
    depth = sum(1 for _, each in m.calls if each is definition)
    if len(m.calls) >= m.depth or depth > 1:
        everything = [*args, *kwargs.values(), *(rest or [])]
        m.expose(everything, function.name, node)
        return m.unknown(node, everything)
    m.entered[id(definition)] = function.module

    def read() -> Value:
        return _enter(m, function, args, kwargs, node, rest, on_yield)

    if node is definition or rest is not None or on_yield is not None:
        return read()
    return summarized(m, function, args, kwargs, node, read)


def _enter(
    m: Interpreter,
    function: Function,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    rest: list[Value] | None,
    on_yield: Callable[[Value], Value] | None,
) -> Value:
    if not (rest or m.is_notebook) and is_refused(function, args, kwargs, node):
        name = function.name.removesuffix(".__init__")
        if m.must_succeed:
            raise ProgramFailsError(m.place(node), f"`{name}` does not take these arguments")
        if name != function.name:
            return NONE  # with these options Python raises a TypeError
    scope = Scope(function.module, function.scope, function, function.owner)
    scope.receiver = args[0] if args else None
    scope.on_yield, scope.windows = on_yield, len(m.windows)
    bind_parameters(m, function, args, kwargs, scope, rest)
    if node is function.node:
        _leave_open(function.node, scope)
    m.calls.append((m.place(node), function.node))
    m.modules.append(function.module)
    m.functions.append(function.name)
    m.receivers.append(scope.receiver if function.owner is not None else NONE)
    # A decorator may turn recording off; around a program's `main` it hardly does.
    unread = len(m.calls) > 1 and any(map(_cannot_be_read, function.decorators))
    if unread:
        m.grad.append(m.grad[-1] and None)
    try:
        return _inside_decorators(m, function, list(function.decorators), scope)
    finally:
        if unread:
            m.grad.pop()
        m.receivers.pop()
        m.functions.pop()
        m.modules.pop()
        m.calls.pop()


def _leave_open(definition: ast.AST, scope: Scope) -> None:
    """Nobody is seen to call it: there may be more arguments."""
    spec = getattr(definition, "args", None)
    for star in (getattr(spec, "vararg", None), getattr(spec, "kwarg", None)):
        if star is not None:
            spread = scope.variables[star.arg]
            assert isinstance(spread, (Sequence, DictValue))
            spread.open = True


def _inside_decorators(
    m: Interpreter, function: Function, left: list[Value], scope: Scope
) -> Value:
    """Run the body under what the decorators switch (`@torch.no_grad()`)."""
    while left:
        decorator = left.pop(0)
        m.spend(1, function.node)
        if isinstance(decorator, LibraryName) and decorator.name.startswith("torch."):
            known = find_call(decorator.name)
            decorator = (
                known(LibraryCall(m, function.node, decorator.name, [])) if known else decorator
            )
        if isinstance(decorator, OpaqueObject):
            results: list[Value] = []

            def inside(results: list[Value] = results) -> ControlFlow | None:
                with m.nested(function.node) as may_go:
                    results.append(_inside_decorators(m, function, left, scope) if may_go else NONE)
                return None

            inside_foreign(m, decorator, inside)
            return results[0]
    if isinstance(function.node, ast.Lambda):
        return m.evaluate(function.node.body, scope)
    signal = m.run_block(function.node.body, scope)
    if signal is ControlFlow.RETURN and scope.returned:
        value = scope.returned[-1]
        m.returned = value, function.node
        return as_chosen(value) if is_chosen(m.sites, function.node) else value
    if any(id(each) in m.sites for each in _tests_before_values(function.node)):
        # `if kind == "a": return x`, `elif kind == "b": return y`, and perhaps `else: raise`.
        return m.unknown(function.node)
    m.returned = Constant(None), function.node
    return m.returned[0]


@once
def _tests_before_values(function: ast.AST) -> list[ast.If]:
    """The tests of a function that decide about a `return` with a value."""
    tests = nodes_of(function, ast.If)
    return [each for each in tests if any(map(_has_value, nodes_of(each, ast.Return)))]


def _has_value(node: ast.Return) -> bool:
    return node.value is not None and getattr(node.value, "value", node) is not None


_HARMLESS = ("torch.", "builtins.", "functools.", "abc.", "typing.", "contextlib.")


def _cannot_be_read(decorator: Value) -> bool:
    if isinstance(decorator, Unknown):
        return True
    name = decorator.name if isinstance(decorator, LibraryName) else ""
    return "." in name and not name.startswith(_HARMLESS)


def has_decorator(function: Function, *names: str) -> bool:
    """A function is inside one of these (last part of the name)."""
    for decorator in function.decorators:
        dotted = decorator.name if isinstance(decorator, LibraryName) else ""
        if dotted.rpartition(".")[2] in names:
            return True
    return False


# ------------------------------------------------------------------------------- classes


def instantiate(
    m: Interpreter,
    cls: Class,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    rest: list[Value] | None = None,
) -> Value:
    """Make an object of a class of the user's and run its `__init__`."""
    made = new_object(m, cls, node)
    initialise = cls.lookup("__init__")
    if isinstance(initialise, Function):
        read = partial(start, m, initialise, [made, *args], kwargs, node, rest)
        construct(m, cls, initialise, made, args if rest is None else None, kwargs, node, read)
    elif isinstance(made, TrainerObject):
        call(m, LibraryMethod(made, "__init__"), args, kwargs, node, rest)
    elif isinstance(made, Instance):
        given = dict(zip(cls.fields, args, strict=False)) | kwargs
        for name in [name for kind in cls.lineage() for name in getattr(kind, "fields", [])]:
            default = cls.lookup(name)
            if default is not None and rest is None and name not in given:  # else it may be given
                made.attributes[name] = _default_of(m, default, node)
        made.attributes.update((name, kept(value, name)) for name, value in given.items())
        complete = cls.lookup("__post_init__")
        if isinstance(complete, Function) and (cls.fields or made.attributes):
            start(m, complete, [made], {}, node)
        if not cls.fields and (container := container_in(made)) is not None:
            call(m, LibraryMethod(container, "__init__"), args, kwargs, node, rest)
    elif isinstance(made, (Optimizer, Scheduler, Dataset, Sampler)):
        adopt(m, made, cls, args, kwargs, node)
    if isinstance(made, Scheduler):
        made.schedules += [each for each in made.attributes.values() if isinstance(each, Scheduler)]
    if isinstance(made, Optimizer) and not (made.models or made.tensors):
        held = [each for each in made.attributes.values() if isinstance(each, Optimizer)]
        if len(held) == 1:
            take_over(made, held[0])
    if isinstance(made, Thing):
        m.emit(Made, node, thing=made)
    return made


def _default_of(m: Interpreter, default: Value, node: ast.AST) -> Value:
    """The value of a dataclass's field that is not given: `field(default_factory=Settings)` makes a
    new one for each object."""
    if not isinstance(default, OpaqueObject) or default.kind != "dataclasses.field":
        return default
    factory = default.arguments.get("default_factory")
    if factory is not None:
        return call(m, factory, [], {}, node)
    return default.arguments.get("default", m.unknown(node))


def take_over(outer: Optimizer, inner: Optimizer) -> None:
    """An optimizer that wraps `inner` has the same parameters."""
    outer.models, outer.tensors = inner.models, inner.tensors
    outer.complete, outer.partial = inner.complete, inner.partial


_ADOPTED = (
    "models whole tensors optimizer size parent arguments written option_defaults options decay"
    " schedules stepped_names shuffle"
).split()


def adopt(
    m: Interpreter,
    made: Thing,
    cls: Class,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> None:
    """Let an object of a user's subclass take over what its library's class would be given."""
    for base in cls.dotted_bases():
        known = find_call(base)
        if known is None:
            continue
        twin = known(LibraryCall(m, node, base, args, kwargs))
        if type(twin) is type(made):
            for name in filter(partial(hasattr, twin), _ADOPTED):
                setattr(made, name, getattr(twin, name))
        return
