"""Processes that train together: the group, the wrappers, and who is who."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from trueloop.doctor.model.events import HookSet, Made, Used
from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.things import Model, Optimizer, Thing
from trueloop.doctor.model.vocabulary import ASKS_FOR_RANK, DIFFERS_BY_RANK, cuts_by_rank
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.process_environment import WORLD_SIZES
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls
from trueloop.doctor.static.interpreter.syntax import nodes_of, once, written
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Constant,
    DictValue,
    Function,
    LibraryName,
    Method,
    OpaqueObject,
    Sequence,
    Unknown,
    Value,
    inside,
)
from trueloop.doctor.static.stubs.manual_updates import notice


def names_rank(m: Interpreter, value: Value | None, depth: int = 5) -> bool:
    """A value was computed from what differs between the processes, by what it is called."""
    names = (
        each.key if isinstance(each, Unknown) else each.symbol
        for each in inside(value, _made_of, depth)
        if isinstance(each, (Unknown, Constant))
    )
    return any(name and DIFFERS_BY_RANK.search(name) for name in names)


def _made_of(value: Value) -> Iterable[Value]:
    if isinstance(value, Unknown):
        return value.of
    if isinstance(value, Sequence):
        return value.values[:20]
    return value.arguments.values() if isinstance(value, OpaqueObject) else ()


@calls("torch.distributed.init_process_group", "deepspeed.init_distributed")
def _group(call: LibraryCall) -> Value:
    m = call.machine
    size = call.arg(3, "world_size")
    if size is None or _is_none(size):
        size = m.environment.variables.get("'WORLD_SIZE'")
    one = isinstance(size, Constant) and size.value in (1, "1") and not size.symbol
    if isinstance(size, Unknown):
        m.environment.world_sizes.add(size.key)
    call.emit(
        Used, what="torch.distributed.init_process_group", result_used=call.result_used,
        ranks=int(one),
    )  # fmt: skip
    return NONE


@calls("torch.distributed.get_rank", "torch.distributed.get_world_size",
       "torch.distributed.get_node_local_rank")  # fmt: skip
def _rank(call: LibraryCall) -> Value:
    return Unknown(f"{call.name}()")


@calls("torch.distributed.is_initialized", "torch.distributed.is_available",
       "torch.distributed.is_torchelastic_launched")  # fmt: skip
def _is(call: LibraryCall) -> Value:
    return Unknown(f"{call.name}()")


@calls("torch.distributed.all_reduce", "torch.distributed.all_gather", "torch.distributed.reduce",
       "torch.distributed.broadcast", "torch.distributed.all_gather_object",
       "torch.distributed.all_gather_into_tensor",
       "torch.distributed.reduce_scatter_tensor")  # fmt: skip
def _collective(call: LibraryCall) -> Value:
    subject = call.arg(0)
    how = "reduced" if call.name == "torch.distributed.all_reduce" else "set"
    notice(call.machine, subject, None, call.node, how)
    call.emit(Used, what=call.name, subject=subject, result_used=call.result_used)
    return NONE


@calls("os.environ.get", "os.getenv", "os.environ.pop")
def _environment(call: LibraryCall) -> Value:
    """A variable of the environment, `RANK` among them."""
    m = call.machine
    key = m.key(call.arg(0, "key", call.unknown()))
    return m.environment.variables.get(key) or Unknown(f"os.environ[{key}]")


@calls("os.environ.update")
def _set_environment(call: LibraryCall) -> Value:
    given = call.arg(0)
    entries = given.entries if isinstance(given, DictValue) else {}
    guarded = bool(call.machine.guards)
    for name, value in (*entries.items(), *call.kwargs.items()):
        call.machine.environment.set(repr(name), value, guarded=guarded)
    return NONE


@calls("torch.distributed.barrier", "torch.distributed.destroy_process_group")
def _nothing(call: LibraryCall) -> Value:
    return NONE


def in_world_of_one(m: Interpreter) -> bool:
    """In this run there is one rank: a guard on the world size has let it through."""
    return any(map(m.is_one, WORLD_SIZES | m.environment.world_sizes))


def asks_for_rank(call: LibraryCall) -> bool:
    """Only some ranks get here: the line is under `if rank == 0:`, below `if rank != 0: return` or
    in a function with such a decorator, or a call that led here is."""
    m = call.machine
    frames = [(definition, place.line) for place, definition in m.calls]
    lines = [line for _, line in frames[1:]] + [getattr(call.node, "lineno", 0)]
    if frames:
        around: list[tuple[ast.AST, int]] = [(m.modules[0].tree, frames[0][1])]
        around += [(each, line) for (each, _), line in zip(frames, lines, strict=True)]
    else:
        around = [(m.modules[-1].tree, lines[0])]
    trees = {each.tree for each in m.modules}
    trees |= {each.module.tree for each in m.namespaces.values()}
    names = frozenset[str]().union(*map(_rank_flags, trees))
    return any(_asks_above(m, definition, line, names) for definition, line in around)


def _asks_above(m: Interpreter, definition: ast.AST, line: int, names: frozenset[str]) -> bool:
    if _is_decorated_for_rank(definition):
        return True
    tests = [node for node in _tests(definition) if _asks(node.test, names)]
    m.spend(len(tests) >> 3, definition)
    for node in tests:
        if node.lineno <= line:
            around = line <= (node.end_lineno or 0)
            if around or (not isinstance(definition, ast.Module) and m.project.leaves(node.body)):
                return True
            if isinstance(node.body[-1], ast.Continue) and line <= _end_of_loop(definition, node):
                return True
    return False


def _end_of_loop(definition: ast.AST, node: ast.If) -> int:
    """The last line of the innermost loop around a statement."""
    ends = [
        each.end_lineno or 0
        for each in walk(definition)
        if isinstance(each, (ast.For, ast.AsyncFor, ast.While))
        and each.lineno <= node.lineno <= (each.end_lineno or 0)
    ]
    return min(ends, default=0)


def _asks(test: ast.expr, names: frozenset[str]) -> bool:
    """A condition asks which process this is, or is a flag that was set to the answer."""
    if _speaks_of_rank(test):
        return True
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    if isinstance(test, ast.BoolOp):
        return any(_asks(each, names) for each in test.values)
    test = test.func if isinstance(test, ast.Call) and not test.args else test
    return getattr(test, "attr", getattr(test, "id", "")) in names


@once
def _speaks_of_rank(test: ast.expr) -> bool:
    return ASKS_FOR_RANK.search(written(test)) is not None


@once
def _rank_flags(tree: ast.AST) -> frozenset[str]:
    """The names that a file gives to the answer: `main = rank == 0`, `Saver(writes=rank == 0)`, a
    function that returns it."""
    found: set[str] = set()
    for node in nodes_of(tree, ast.Assign):
        if _is_answer(node.value):
            found.update(getattr(each, "attr", getattr(each, "id", "")) for each in node.targets)
    for function in nodes_of(tree, ast.FunctionDef):
        last = function.body[-1]
        value = last.value if isinstance(last, ast.Return) else None
        found.add(function.name if value is not None and _is_answer(value) else "")
    for call in nodes_of(tree, ast.Call):
        given = (each for each in call.keywords if _is_answer(each.value))
        found.update(each.arg or "" for each in given)
    return frozenset(found - {""})


def _is_answer(node: ast.expr) -> bool:
    """A comparison with a rank, by itself or with a second condition, or what a name of such a
    comparison says (`is_main_process if given is None else given`)."""
    compares = isinstance(node, (ast.Compare, ast.BoolOp, ast.IfExp))
    return compares and ASKS_FOR_RANK.search(written(node)) is not None


@once
def _is_decorated_for_rank(definition: ast.AST) -> bool:
    decorators = getattr(definition, "decorator_list", ())
    return any(ASKS_FOR_RANK.search(written(each)) for each in decorators)


@once
def _tests(definition: ast.AST) -> list[ast.If]:
    """The `if`s of a function or a module."""
    if isinstance(definition, ast.Module):
        return nodes_of(definition, ast.If)
    return [node for node in walk(definition) if isinstance(node, ast.If)]


_cuts_by_rank = once(cuts_by_rank)


def shares_by_hand(m: Interpreter) -> bool:
    """The source takes every nth sample by the rank: `indices[rank::world_size]`."""
    module = m.modules[-1]
    if (
        not {"DistributedDataParallel", "DDP", "FSDP", "FullyShardedDataParallel"}
        & module.survey.uses.keys()
    ):
        return False
    return _cuts_by_rank(module.tree)


# ------------------------------------------------------------------------------- wrappers


def wrap(call: LibraryCall, inner: Value | None, wrapper: str) -> Model:
    """A module around a second one, that shares its parameters."""
    made = Model(
        kind=call.name,
        made=call.place,
        wraps=inner if isinstance(inner, Model) else None,
        wrapper=wrapper,
        guards=frozenset(call.machine.guards),
        training=inner.training if isinstance(inner, Model) else None,
        complete=isinstance(inner, Model) and inner.complete,
        known=isinstance(inner, Model) and inner.known,
        ranks=int(in_world_of_one(call.machine)),
    )
    if isinstance(inner, Model):
        inner.parents.append(made)
    call.emit(Made, thing=made)
    return made


@calls("torch.nn.parallel.DistributedDataParallel", "apex.parallel.DistributedDataParallel")
def _ddp(call: LibraryCall) -> Value:
    made = wrap(call, call.arg(0, "module"), "ddp")
    devices = call.arg(1, "device_ids")
    made.device_ids = devices is not None and not _is_none(devices)
    return made


@calls("torch.nn.parallel.data_parallel")
def _data_parallel(call: LibraryCall) -> Value:
    """The function: a module is called, in parts, and what it returns is put together again."""
    module, given = call.arg(0, "module"), call.arg(1, "inputs")
    args: list[Value] = []
    args += given.values if isinstance(given, Sequence) else [given] if given is not None else []
    return call.machine.call_value(module, args, node=call.node)


@calls("torch.nn.DataParallel", "torch.nn.parallel.DataParallel")
def _dp(call: LibraryCall) -> Value:
    given = call.arg(0, "module")
    if isinstance(given, Optimizer):  # and `optimizer.module.step()` later, as old examples do
        return given
    return wrap(call, given, "dp")


@calls("torch.distributed.fsdp.FullyShardedDataParallel",
       "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel",
       "fairscale.nn.FullyShardedDataParallel", "torch.distributed.fsdp.FSDP")  # fmt: skip
def _fsdp(call: LibraryCall) -> Value:
    made = wrap(call, call.arg(0, "module"), "fsdp")
    made.device_ids = call.arg(-1, "device_id") is not None
    return made


def _is_none(value: object) -> bool:
    return isinstance(value, Constant) and value.value is None


@calls("torch.distributed.fsdp.fully_shard", "torch.distributed._composable.fsdp.fully_shard")
def _shard(call: LibraryCall) -> Value:
    """Sharded in place: it stays the same module."""
    call.emit(
        Used, what=call.name, subject=call.arg(0, "module"), result_used=call.result_used,
        mesh="mesh" in call.kwargs,
    )  # fmt: skip
    found = call.arg(0, "module")
    if isinstance(found, Model):
        call.emit(HookSet, model=found, by="fully_shard")
    return found if found is not None else call.unknown()


@calls("torch.compile")
def _compile(call: LibraryCall) -> Value:
    inner = call.arg(0, "model")
    if isinstance(inner, Model):
        return wrap(call, inner, "compile")
    if isinstance(inner, (Function, Method, LibraryName, Thing)):
        return inner
    if inner is None:
        # `@torch.compile(mode=...)`: what it is given next comes back as it is.
        return LibraryName("trueloop.identity")
    return call.unknown(inner)


@calls("trueloop.identity")
def _identity(call: LibraryCall) -> Value:
    found = call.arg(0)
    return found if found is not None else call.unknown()


@calls("horovod.torch.DistributedOptimizer")
def _averaging_optimizer(call: LibraryCall) -> Value:
    """The optimizer, whose step first averages the gradients of all ranks."""
    return call.arg(0, "optimizer") or call.unknown()


@calls("horovod.torch.broadcast_parameters", "horovod.torch.broadcast_optimizer_state")
def _sent_to_all_ranks(call: LibraryCall) -> Value:
    return NONE


@calls("torch.nn.SyncBatchNorm.convert_sync_batchnorm", "apex.parallel.convert_syncbn_model",
       "torch.nn.utils.convert_sync_batchnorm")  # fmt: skip
def _converted(call: LibraryCall) -> Value:
    """The same model with its batch norms replaced: their parameters are taken over."""
    found = call.arg(0, "module")
    return found if found is not None else call.unknown()


@calls("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes",
       "torch.multiprocessing.spawn.spawn")  # fmt: skip
def _spawn(call: LibraryCall) -> Value:
    """Each process calls the function with its number first."""
    given = call.arg(1, "args")
    args = given.values if isinstance(given, Sequence) else []
    return _started(call, call.arg(0, "fn"), [Unknown("rank"), *args])


@calls("torch.multiprocessing.Process", "multiprocessing.Process")
def _process(call: LibraryCall) -> Value:
    """As if it ran where it is made."""
    given = call.arg(-1, "args")
    return _started(
        call, call.kwargs.get("target"), given.values if isinstance(given, Sequence) else []
    )


@calls("accelerate.notebook_launcher", "accelerate.debug_launcher")
def _launch(call: LibraryCall) -> Value:
    given = call.arg(1, "args")
    return _started(
        call, call.arg(0, "function"), given.values if isinstance(given, Sequence) else []
    )


def _started(call: LibraryCall, function: Value | None, args: list[Value]) -> Value:
    if isinstance(function, (Function, Method)):
        call.machine.call_value(function, list(args), node=call.node)
    return call.unknown()
