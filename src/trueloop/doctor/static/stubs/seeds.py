"""Random generators: seeding them, keeping their state, and making new ones."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from trueloop.doctor.model.events import Seeded, Used
from trueloop.doctor.model.known_values import loop_of
from trueloop.doctor.model.randomness import GENERATORS, TORCH_DRAWS
from trueloop.doctor.model.things import Tensor
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.survey import BACKWARD, last_name
from trueloop.doctor.static.interpreter.syntax import nodes_of, once
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Constant,
    OpaqueObject,
    Sequence,
    Unknown,
    Value,
    inside,
)
from trueloop.doctor.static.stubs import arrays
from trueloop.doctor.static.stubs.ranks import names_rank

_LIBRARIES = {
    "torch.manual_seed": "torch",
    "torch.random.manual_seed": "torch",
    "torch.cuda.manual_seed": "cuda",
    "torch.cuda.manual_seed_all": "cuda",
    "torch.mps.manual_seed": "cuda",
    "numpy.random.seed": "numpy",
    "random.seed": "random",
    "lightning.seed_everything": "all",
    "lightning.pytorch.seed_everything": "all",
    "lightning.fabric.seed_everything": "all",
    "lightning.pytorch.utilities.seed.seed_everything": "all",
    "accelerate.utils.set_seed": "all",
    "transformers.set_seed": "all",
    "transformers.trainer_utils.set_seed": "all",
    "transformers.enable_full_determinism": "all",
    "monai.utils.set_determinism": "all",
    "ignite.utils.manual_seed": "all",
    "trueloop.seed_everything": "all",
}


@calls(*_LIBRARIES)
def _seed(call: LibraryCall) -> Value:
    """A global generator is set to a number; without one, to something new each time."""
    value = call.arg(0, "seed")
    depends = True if value is None or constant_none(value) else changes(value)
    call.emit(
        Seeded,
        library=_LIBRARIES[call.name],
        value=value,
        depends=depends,
        forked=bool(call.machine.forked),
        by_rank=names_rank(call.machine, value),
        drawn=value is None or any(map(_is_drawn, inside(value, _parts, 6))),
        for_data=bool(call.machine.calls) and _draws_samples(call.machine.calls[-1][1]),
    )
    return OpaqueObject("torch.Generator") if "torch" in call.name else NONE


_HOLDS_SAMPLES = re.compile(r"Tensor|Data|Loader")


@once
def _draws_samples(function: ast.AST) -> bool:
    """It draws with torch, makes nothing but tensors and data sets, and returns what it made."""
    names = [last_name(node.func) for node in nodes_of(function, ast.Call)]
    return (
        not TORCH_DRAWS.isdisjoint(names)
        and any(node.value is not None for node in nodes_of(function, ast.Return))
        and not any(each[:1].isupper() and not _HOLDS_SAMPLES.search(each) for each in names)
        and BACKWARD.isdisjoint(names)
    )


def _is_drawn(value: Value) -> bool:
    return isinstance(value, Tensor) or (isinstance(value, Unknown) and value.drawn)


@calls(*(f"random.{name}" for name in "randint randrange random getrandbits choice".split()),
       *(f"numpy.random.{name}" for name in "randint random rand choice integers".split()),
       *(f"secrets.{name}" for name in "randbits randbelow token_bytes choice".split()),
       *(f"time.{name}" for name in "time time_ns perf_counter perf_counter_ns monotonic".split()),
       "os.urandom", "os.getpid", "uuid.uuid4", "datetime.datetime.now",
       "datetime.datetime.utcnow")  # fmt: skip
def _drawn(call: LibraryCall) -> Value:
    found = call.unknown(*call.args, *call.kwargs.values())
    found.drawn = True
    arrays.notice(call.machine, call.name, call.args, call.kwargs, found)
    found.number = call.name.startswith("time.")
    return found


def constant_none(value: Value | None) -> bool:
    return isinstance(value, Constant) and value.value is None


_TURN = re.compile(r"<\d+\.\d+\.(\d+)>")


def changes(value: Value) -> bool | None:
    """A value is different in each turn of the loops around it; None where unknown."""
    if any(loop_of(each) for each in inside(value, _parts, 6)):
        return True
    if isinstance(value, Constant):
        return False
    if isinstance(value, Unknown):
        # An unknown result of a call carries the turn that it was computed in.
        made_in_turns = any(int(turn) for turn in _TURN.findall(value.key))
        if made_in_turns or re.search(r"time|urandom|epoch|step|iter", value.key):
            return None
        return False
    if isinstance(value, Sequence) and value.values:
        return None if any(_may_change(each) for each in inside(value, _parts, 1)) else False
    return None


def _may_change(part: Value) -> bool:
    """An element of a container, of which nothing is known to change."""
    return not isinstance(part, Sequence) and changes(part) is None


def _parts(value: Value) -> Iterable[Value]:
    if isinstance(value, Sequence):
        return value.values
    return value.of if isinstance(value, Unknown) else ()


@calls("torch.seed", "torch.initial_seed", "torch.random.initial_seed", "torch.random.seed")
def _new_seed(call: LibraryCall) -> Value:
    if call.name.endswith(".seed"):
        forked = bool(call.machine.forked)
        call.emit(Seeded, library="torch", value=None, depends=True, drawn=True, forked=forked)
    return Unknown(f"{call.name}() <{call.place.line}>", loop_variant=True, drawn=True)


@calls("torch.utils.data.get_worker_info")
def _worker_info(call: LibraryCall) -> Value:
    return Unknown("worker info", loop_variant=True)


@calls("torch.random.fork_rng")
def _fork(call: LibraryCall) -> Value:
    return OpaqueObject("torch.random.fork_rng", forks_rng=True)


@calls("torch.get_rng_state", "torch.random.get_rng_state", "torch.cuda.get_rng_state",
       "torch.cuda.get_rng_state_all", "numpy.random.get_state", "random.getstate")  # fmt: skip
def _state(call: LibraryCall) -> Value:
    return call.unknown(*call.args)


@calls("torch.set_rng_state", "torch.random.set_rng_state", "torch.cuda.set_rng_state",
       "torch.cuda.set_rng_state_all", "numpy.random.set_state", "random.setstate")  # fmt: skip
def _restore(call: LibraryCall) -> Value:
    call.emit(Used, what=call.name, subject=call.arg(0), result_used=call.result_used)
    return NONE


@calls(*GENERATORS)
def _generator(call: LibraryCall) -> Value:
    """A generator of the user's own."""
    named = {str(i): arg for i, arg in enumerate(call.args)} | call.kwargs
    made = call.place if call.machine.noted is None else None
    return OpaqueObject(call.name, named, made=made, key=f"{call.name}()@{call.place.line}")


@methods(OpaqueObject, "manual_seed")
def _seed_own(call: LibraryCall) -> Value:
    generator: OpaqueObject = call.receiver
    return generator
