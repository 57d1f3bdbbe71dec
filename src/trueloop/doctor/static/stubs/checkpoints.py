"""Saving, loading and copying state."""

from __future__ import annotations

import ast
import copy
import re

from trueloop.doctor.model.events import (
    FileLoaded,
    FileSaved,
    FlagsSet,
    Made,
    ModeSet,
    StateDictCreated,
    StateDictLoaded,
)
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.submodules import Submodules
from trueloop.doctor.model.things import NOWHERE, Checkpoint, Model, StateDict, Tensor, Thing
from trueloop.doctor.model.vocabulary import handles_prefix, saves_parts
from trueloop.doctor.static.interpreter.calls import instantiate
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.passed_arguments import where_passed
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.survey import last_name
from trueloop.doctor.static.interpreter.syntax import nodes_of, once, written
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Class,
    Constant,
    DictValue,
    Function,
    Instance,
    LibraryMethod,
    Module,
    OpaqueObject,
    Scope,
    Sequence,
    Unknown,
    Value,
    constant,
)
from trueloop.doctor.static.stubs.path_origins import file_path
from trueloop.doctor.static.stubs.ranks import asks_for_rank, in_world_of_one, names_rank

FEW = 6
"""Parts of a value that are looked at, on each level, for where a file's name comes from."""
IN_MEMORY = "<memory>"
"""The file of what is written to or read from the program's own memory."""
KEY_OF_A_STATE = "key of a state dict"


# ------------------------------------------------------------------------------- files


def _file(call: LibraryCall, value: Value | None, position: int, name: str) -> str:
    """How a file is named: its path where it is known, otherwise as it is written."""
    if _is_own_buffer(value):
        return IN_MEMORY
    path = constant(value)
    if isinstance(path, str):
        return path
    given = _argument(call, position, name)
    return written(given) if given is not None else ""


_BUFFERS = ("BytesIO", "TemporaryFile", "NamedTemporaryFile", "SpooledTemporaryFile")


def _is_own_buffer(value: Value | None, depth: int = 3) -> bool:
    """Memory, or a file without a name, that only this program sees."""
    if isinstance(value, OpaqueObject):
        return value.kind.rpartition(".")[2] in _BUFFERS
    if isinstance(value, LibraryMethod) and value.name == "name":
        # A temporary file's name: the file is deleted when it is closed, unless an argument keeps
        # it.
        owner = value.receiver
        stays = isinstance(owner, OpaqueObject) and constant(owner.arguments.get("delete")) is False
        return not stays and _is_own_buffer(owner, depth)
    of = value.of if isinstance(value, Unknown) and depth else ()
    return any(_is_own_buffer(part, depth - 1) for part in of[:FEW])


def _argument(call: LibraryCall, position: int, name: str) -> ast.expr | None:
    """The expression given for an argument."""
    node = call.node
    given: ast.expr | None = None
    if isinstance(node, ast.Call):
        if 0 <= position < len(node.args):
            given = node.args[position]
        for keyword in node.keywords:
            given = keyword.value if keyword.arg == name else given
    return given


def _by_rank(m: Interpreter, value: Value) -> bool | None:
    """Whether a file's name differs between the ranks: None where it comes from nowhere to be
    seen, such as a function's parameter."""
    if _is_own_buffer(value):
        return True
    if names_rank(m, value):
        return True
    return None if _from_nowhere(value) else False


def _from_nowhere(value: Value, depth: int = 5) -> bool:
    if isinstance(value, Unknown):
        if not value.of:
            return value.key.isidentifier()
        return depth == 0 or any(_from_nowhere(part, depth - 1) for part in value.of[:FEW])
    if depth and isinstance(value, Sequence):
        return any(_from_nowhere(part, depth - 1) for part in value.values[:FEW])
    if depth and isinstance(value, OpaqueObject):
        return any(_from_nowhere(part, depth - 1) for part in [*value.arguments.values()][:FEW])
    return not isinstance(value, Constant)


@calls("torch.save")
def _save(call: LibraryCall) -> Value:
    file = call.arg(1, "f", call.unknown())
    what = _argument(call, 0, "obj")
    call.emit(
        FileSaved,
        value=call.arg(0, "obj", call.unknown()),
        file=_file(call, file, 1, "f"),
        path=file_path(call.machine, file),
        by_rank=True if asks_for_rank(call) else _by_rank(call.machine, file),
        what=call.machine.place(what) if what is not None else NOWHERE,
        world_of_one=in_world_of_one(call.machine),
    )
    return NONE


@calls("safetensors.torch.save_file", "accelerate.utils.save", "torch.distributed.checkpoint.save")
def _save_otherwise(call: LibraryCall) -> Value:
    # Either no more than tensors, or a library that knows about ranks.
    state = call.arg(0, "tensors", NONE)
    call.emit(FileSaved, value=state, file=_file(call, call.arg(1), 1, "filename"), by_rank=True)
    return NONE


@calls("torch.load")
def _load(call: LibraryCall) -> Value:
    file = call.arg(0, "f", call.unknown())
    loaded = Checkpoint(file=_file(call, file, 0, "f"), made=call.place, known=True)
    loaded.optimizer_restored = _restored_optimizers(call.machine)
    given = call.arg(-1, "weights_only")
    option = _argument(call, -1, "weights_only")
    where: Location | ast.AST = call.node
    if isinstance(call.node, ast.Call) and constant(given) is False:
        where = where_passed(call.machine, call.node, "weights_only")
    call.machine.emit(
        FileLoaded,
        where,
        file=loaded.file,
        path=file_path(call.machine, file),
        weights_only=constant(given) if given is not None else None,
        value=loaded,
        option=call.machine.place(option) if isinstance(option, ast.Constant) else NOWHERE,
    )
    return loaded


def _modules(m: Interpreter) -> list[Module]:
    """All files that this run has come to."""
    found = {id(scope.module): scope.module for scope in m.namespaces.values()}
    found |= {id(module): module for module in m.modules}
    return list(found.values())


_OPTIMIZER = re.compile(r"opt", re.I)
_OPTIMIZERS = re.compile(r"opts$|optim", re.I)


def _restored_optimizers(m: Interpreter) -> frozenset[str]:
    """The names of what is called an optimizer, or is one of the `optimizers` that a loop goes
    through, and is given its state somewhere in the source."""
    return frozenset(
        name
        for module in _modules(m)
        for name, uses in module.survey.uses.items()
        if "load_state_dict" in uses
        and (_OPTIMIZER.search(name) or name in _each_optimizer(module.tree))
    )


@once
def _each_optimizer(tree: ast.Module) -> frozenset[str]:
    """`each` of `for name, each in optimizers.items():`."""
    found = set()
    for loop in nodes_of(tree, ast.For):
        iterable, target = loop.iter, loop.target
        if isinstance(iterable, ast.Call) and last_name(iterable) in ("items", "values"):
            iterable = getattr(iterable.func, "value", iterable)
            target = target.elts[-1] if isinstance(target, ast.Tuple) else target
        if isinstance(target, ast.Name) and _OPTIMIZERS.search(last_name(iterable)):
            found.add(target.id)
    return frozenset(found)


@calls("torch.hub.load_state_dict_from_url", "torch.utils.model_zoo.load_url",
       "safetensors.torch.load_file", "torch.hub.load_url")  # fmt: skip
def _load_safely(call: LibraryCall) -> Value:
    return Checkpoint(file=_file(call, call.arg(0), 0, "url"), made=call.place, known=True)


@methods(Checkpoint, "__getitem__", "get", "pop")
def _entry(call: LibraryCall) -> Value:
    loaded: Checkpoint = call.receiver
    key = call.machine.key(call.arg(0, "key", call.unknown()))
    if call.name == "pop":
        loaded.edited = True
    if key in loaded.attributes:
        kept: Value = loaded.attributes[key]
        return kept
    found = Checkpoint(file=loaded.file, made=loaded.made, known=True, inside=loaded)
    found.optimizer_restored = loaded.optimizer_restored
    loaded.attributes[key] = found
    return found


@methods(Checkpoint, "items", "keys", "values")
def _entries(call: LibraryCall) -> Value:
    loaded: Checkpoint = call.receiver
    key = Unknown(f"key of {loaded.file}@{loaded.made.line}", loop_variant=True)
    value = Unknown(f"value of {loaded.file}@{loaded.made.line}", (loaded,), loop_variant=True)
    pairs: dict[str, Value] = {
        "items": Sequence("tuple", [key, value]),
        "keys": key,
        "values": value,
    }
    return Sequence("list", [pairs[call.name]], True)


@methods(Checkpoint, "update", "clear", "popitem", "setdefault")
def _edit(call: LibraryCall) -> Value:
    call.receiver.edited = True
    return call.unknown(call.receiver)


@methods(Checkpoint, "copy", "float", "half", "double", "bfloat16", "cpu", "cuda", "state_dict")
def _same_entries(call: LibraryCall) -> Value:
    """Also of a module that the file has whole: `checkpoint["model"].float().state_dict()`."""
    loaded: Checkpoint = call.receiver
    return loaded


@methods(Model, "freeze")
def _frozen(call: LibraryCall) -> Value:
    """Lightning's own: no gradients, and eval mode."""
    model: Model = call.receiver
    if not (isinstance(model.cls, Class) and _is_lightning(model.cls)):
        return call.unknown(model, *call.args)
    for member in model.family():
        member.training = False
    call.emit(FlagsSet, model=model, requires_grad=False, whole=True)
    call.emit(ModeSet, model=model, training=False)
    return NONE


def _is_lightning(cls: Class) -> bool:
    return any(name.endswith(".LightningModule") for name in cls.dotted_bases())


_OF_THE_LOADER = frozenset("checkpoint_path map_location hparams_file strict weights_only".split())


@methods(Class, "load_from_checkpoint")
def _from_checkpoint(call: LibraryCall) -> Value:
    """A `LightningModule` out of its file, which also has the arguments that are not given here."""
    cls: Class = call.receiver
    if not _is_lightning(cls):
        return call.unknown(*call.args, *call.kwargs.values())
    given = {name: value for name, value in call.kwargs.items() if name not in _OF_THE_LOADER}
    made = instantiate(call.machine, cls, [], given, call.node, [])
    for each in made.family() if isinstance(made, Model) else ():
        each.pretrained = True
    return made


# ------------------------------------------------------------------------------- state


@methods(Thing, "state_dict")
def _state(call: LibraryCall) -> Value:
    state = StateDict(owner=call.receiver, made=call.place, known=call.receiver.known)
    if isinstance(call.receiver, Model) and isinstance(call.node, ast.Call):
        _describe(call, state, call.node.func)
    call.emit(StateDictCreated, state=state)
    return state


def _describe(call: LibraryCall, state: StateDict, function: ast.expr) -> None:
    """Facts of a model's state: where the model is written, whether the source loads a state into
    something of that name, and whether the file imports `copy`."""
    if isinstance(function, ast.Attribute):
        state.taken_from = call.machine.place(function.value)
        name = last_name(function.value)
        state.loaded_back = any(
            "load_state_dict" in each.survey.uses.get(name, ()) for each in _modules(call.machine)
        )
    if call.receiver.wrapper:
        state.prefix_known = any(
            _handles_prefix(scope.module.tree) for scope in call.machine.namespaces.values()
        )
    module = call.machine.modules[-1]
    state.deepcopy_at_hand = any(
        isinstance(each, ast.Import)
        and "copy" in [alias.asname or alias.name for alias in each.names]
        for each in module.tree.body
    )


@methods(Thing, "load_state_dict")
def _load_state(call: LibraryCall) -> Value:
    state = call.arg(0, "state_dict", call.unknown())
    strict = _strict(call)
    if strict is False and isinstance(state, Checkpoint):
        state.saved_in_part = _saves_parts(call.machine.modules[-1].tree)
    call.emit(
        StateDictLoaded,
        thing=call.receiver,
        state=state,
        strict=strict,
        assign=call.const(2, "assign", default=False),
        result_used=call.result_used,
    )
    return call.unknown(call.receiver)


_handles_prefix = once(handles_prefix)
_saves_parts = once(saves_parts)


def _strict(call: LibraryCall) -> bool | None:
    """As it is written; None for an option, whatever its default."""
    written = _argument(call, 1, "strict")
    if written is not None and not isinstance(written, ast.Constant):
        return None
    found: bool | None = call.const(1, "strict", default=True)
    return found


@methods(StateDict, "items", "keys", "values")
def _state_entries(call: LibraryCall) -> Value:
    key = Unknown(f"{KEY_OF_A_STATE} <{call.machine.number(call.receiver)}>", loop_variant=True)
    value = Tensor(graph=False, made=call.place)
    value.attributes["<state>"] = call.receiver
    pairs: dict[str, Value] = {
        "items": Sequence("tuple", [key, value]),
        "keys": key,
        "values": value,
    }
    return Sequence("list", [pairs[call.name]], True)


@methods(StateDict, "__getitem__", "get", "pop")
def _state_entry(call: LibraryCall) -> Value:
    return Tensor(graph=False, made=call.place)


@methods(StateDict, "copy")
def _shallow(call: LibraryCall) -> Value:
    state: StateDict = call.receiver
    return state  # another dict, of the same live tensors


@methods(StateDict, "update")
def _state_updated(call: LibraryCall) -> Value:
    call.receiver.edited = True
    return NONE


# ------------------------------------------------------------------------------- copies


@calls("copy.deepcopy", "copy.copy")
def _copy(call: LibraryCall) -> Value:
    return duplicate(call, call.arg(0, "x", call.unknown()), {}, call.name == "copy.deepcopy")


def duplicate(call: LibraryCall, value: Value, memo: dict[int, Value], deep: bool) -> Value:
    """A copy of a value with its contents; a shallow one shares them."""
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, StateDict):
        return _detached(value) if deep else value  # a shallow one has the same live tensors
    if not isinstance(value, (Thing, Instance, Sequence, DictValue)):
        return value
    call.machine.spend(1, call.node)
    made = memo[id(value)] = copy.copy(value)

    def inner(part: Value) -> Value:
        with call.machine.nested(call.node) as may_go:
            return duplicate(call, part, memo, deep) if deep and may_go else part

    if isinstance(made, Sequence):
        made.values = [inner(part) for part in made.values]
        made.turns = call.machine.turns_begun
    elif isinstance(made, DictValue):
        made.entries = {key: inner(part) for key, part in made.entries.items()}
        made.rest = [inner(part) for part in made.rest]
        made.keys_of_rest = [*made.keys_of_rest]
        made.turns = call.machine.turns_begun
    else:
        made.attributes = {key: inner(part) for key, part in made.attributes.items()}
    if isinstance(made, Thing):
        made.name, made.made = "", call.place
    if isinstance(made, Model) and isinstance(value, Model):
        made.copy_of = value if deep else None
        inside = {key: inner(child) for key, child in made.children.items()}
        wrapped = inner(made.wraps) if made.wraps is not None else None
        made.wraps = wrapped if isinstance(wrapped, Model) else None
        made.children = Submodules(
            {key: each for key, each in inside.items() if isinstance(each, Model)}
        )
        made.parents = []
        call.emit(Made, thing=made)
    return made


_SAME = frozenset({"cpu", "cuda", "to", "clone", "detach", "half", "float", "contiguous"})


def state_of_comprehension(m: Interpreter, node: ast.DictComp, scope: Scope) -> StateDict | None:
    """`{k: v.cpu() for k, v in model.state_dict().items()}`: the same state, with the tensors
    themselves or with copies; None for any other dictionary."""
    value, copied = node.value, False
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr not in _SAME:
            return None
        copied |= value.func.attr != "detach"
        value = value.func.value
    if isinstance(value, ast.Attribute) and value.attr == "data":
        value = value.value
    target = node.generators[0].target
    if not isinstance(value, ast.Name) or not isinstance(target, ast.Tuple):
        return None
    key, tensor = target.elts[0], m.evaluate(value, scope)
    state = tensor.attributes.get("<state>") if isinstance(tensor, Tensor) else None
    if not isinstance(state, StateDict) or len(node.generators) > 1:
        return None
    same = isinstance(key, ast.Name) and written(node.key) == key.id
    if copied or not same or node.generators[0].ifs:
        state = _detached(state) if copied else copy.copy(state)
        state.edited |= not same or bool(node.generators[0].ifs)
    return state


def state_of_pairs(pairs: Sequence, node: ast.AST) -> StateDict | None:
    """`dict(state.items())`, `dict((k, v) for k, v in state.items())`: the state whose keys and
    own tensors these are."""
    pair = pairs.values[0] if len(pairs.values) == 1 else None
    if not isinstance(pair, Sequence) or len(pair.values) != 2:
        return None
    source = node.args[0] if isinstance(node, ast.Call) and node.args else None
    if isinstance(source, ast.GeneratorExp) and any(each.ifs for each in source.generators):
        return None
    key, tensor = pair.values
    state = tensor.attributes.get("<state>") if isinstance(tensor, Tensor) else None
    own = isinstance(key, Unknown) and key.key.startswith(KEY_OF_A_STATE)
    return state if own and isinstance(state, StateDict) else None


def _detached(state: StateDict) -> StateDict:
    made = copy.copy(state)
    made.copied = True
    return made


@calls("torch.jit.script", "torch.jit.trace", "torch.jit.freeze", "torch.jit.load")
def _scripted(call: LibraryCall) -> Value:
    """A program of TorchScript's: it is saved whole, and rightly so."""
    given = call.arg(0)
    if isinstance(given, Function):
        return given
    return OpaqueObject("torch.jit.ScriptModule", {"model": call.arg(0, "obj", NONE)})


def is_edited(value: Value) -> None:
    """Keys were taken out of a state dict, or a file's contents, by hand."""
    if isinstance(value, (Checkpoint, StateDict)):
        value.edited = True
