"""A bundle: a folder with a computation that gave no finite numbers, to be carried out again.

    trueloop-nan-20240131-235959/
        tape.json             operations of aten in their order, with their lines; what was found
        tensors.safetensors   weights, buffers, the batch and other constants that they begin with
        rng.json              states of the generators that they begin with

Nothing in it is a pickle, and no code of the program's is needed or run.
"""

from __future__ import annotations

import base64
import json
import os
import random
import sys
import time
from typing import TYPE_CHECKING, Any

import torch

from trueloop.doctor.findings import Place
from trueloop.doctor.runtime import calls
from trueloop.doctor.runtime.tape import Operation, kind_of_bad
from trueloop.errors import ConfigError

if TYPE_CHECKING:
    from trueloop.doctor.runtime.forensics import Found

VERSION = 1
_BLANK = ("aten.empty", "aten.new_empty")
"""Operations whose result is not defined."""
_FILES = ("tape.json", "tensors.safetensors", "rng.json")


def write(folder: str, found: Found, place: Place, update: int) -> str | None:
    """Write a bundle into a new folder below `folder`; its path, or None if there is nothing to
    carry out, or not all of it could be kept. Raises `OSError` where it cannot be written."""
    tape = found.tape
    if tape is None or not tape.whole or not tape.operations:
        return None
    if not any(made.bad for made in tape.operations) and not any(held.bad for held in tape.values):
        return None
    from safetensors.torch import save_file

    path = _new_folder(folder)
    tensors = {
        str(index): _plain(value.data)
        for index, value in enumerate(tape.values)
        if value.data is not None
    }
    content = {
        "version": VERSION,
        "torch": torch.__version__,
        "update": update,
        "place": list(place),
        "found": {key: _written(value) for key, value in found.values.items()},
        "values": [
            {
                "source": list(each.source) if each.source is not None else None,
                "bad": each.bad,
                "stride": list(each.data.stride()) if each.data is not None else None,
            }
            for each in tape.values
        ],
        "operations": [_operation(each) for each in tape.operations],
    }
    with open(os.path.join(path, "tape.json"), "w", encoding="utf-8") as file:
        json.dump(content, file)
    save_file(tensors, os.path.join(path, "tensors.safetensors"))
    with open(os.path.join(path, "rng.json"), "w", encoding="utf-8") as file:
        json.dump(_generators(found.rng), file)
    return path


def _new_folder(folder: str) -> str:
    name = time.strftime("trueloop-nan-%Y%m%d-%H%M%S")
    for attempt in range(100):
        path = os.path.join(folder, name + (f"-{attempt}" if attempt else ""))
        try:
            os.mkdir(path)
        except FileExistsError:
            continue
        return path
    raise FileExistsError(f"{name} is there already")


def _plain(tensor: Any) -> Any:
    """As a file of safetensors has it: on the CPU, and without gaps."""
    made = tensor.detach().cpu().contiguous().clone()
    return torch.view_as_real(made.resolve_conj()) if made.is_complex() else made


def _written(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_written(each) for each in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _operation(each: Operation) -> dict[str, Any]:
    return {
        "name": each.name,
        "args": each.args,
        "kwargs": each.kwargs,
        "outputs": each.outputs,
        "bad": each.bad,
        "module": each.module,
        "kind": each.kind,
        "line": list(each.place[:2]) if each.place is not None else None,
        "node": each.node,
    }


def _generators(states: tuple[Any, ...] | None) -> dict[str, Any]:
    """Those that the computation begins with; of Python and numpy, as they are now."""
    states = calls.rng_state() if states is None else states
    written: dict[str, Any] = {
        name: base64.b64encode(bytes(state.tolist())).decode()
        for name, state in zip(("cpu", "cuda"), states, strict=False)
    }
    written["python"] = random.getstate()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        name, keys, *rest = numpy.random.get_state()
        written["numpy"] = [name, keys.tolist(), *rest]
    return written


# ---------------------------------------------------------------------- carried out again


class Replayed:
    """What a bundle gives when it is carried out again."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content
        self.first: dict[str, Any] | None = None
        """The first operation whose result is not finite in the way that the loss is not; a mask of
        -inf comes before a NaN, and is no fault."""
        self.outside: list[tuple[str, str, str]] = []
        """(kind, name, what it holds) of what was not finite before any operation."""
        self.same = True
        """What is finite and what is not is as it was when the bundle was written."""
        self.count = 0


def read(path: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A bundle's tape, tensors and generators. Raises `ConfigError` for what is no bundle."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    missing = [name for name in _FILES if not os.path.isfile(os.path.join(path, name))]
    if missing:
        raise ConfigError(f"{path} is no bundle (no {missing[0]}): write the folder's name")
    try:
        with open(os.path.join(path, "tape.json"), encoding="utf-8") as file:
            content = json.load(file)
        with open(os.path.join(path, "rng.json"), encoding="utf-8") as file:
            generators = json.load(file)
        tensors = load_file(os.path.join(path, "tensors.safetensors"))
    except (ValueError, OSError, SafetensorError) as error:
        raise ConfigError(f"{path} cannot be read ({error}): watch the program again") from None
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise ConfigError(f"{path} is of another version of trueloop: watch the program again")
    return content, tensors, generators


def replay(path: str) -> Replayed:
    """Carry a bundle out again. Raises `ConfigError` for one that this machine cannot."""
    content, tensors, generators = read(path)
    replayed = Replayed(content)
    values: dict[int, Any] = {}
    for index, value in enumerate(content["values"]):
        if str(index) in tensors:
            values[index] = _as_it_was(tensors[str(index)], value["stride"])
            bad = kind_of_bad(values[index])
            if bad and value["source"]:
                replayed.outside.append((*value["source"], bad))
    states = tuple(
        torch.frombuffer(bytearray(base64.b64decode(generators[name])), dtype=torch.uint8)
        for name in ("cpu", "cuda")
        if name in generators and (name == "cpu" or torch.cuda.is_available())
    )
    with torch.random.fork_rng(), torch.no_grad():
        calls.set_rng_state(states)
        for operation in content["operations"]:
            _carry_out(operation, values, replayed)
    return replayed


def _as_it_was(tensor: Any, stride: list[int]) -> Any:
    if len(stride) != tensor.dim():
        tensor = torch.view_as_complex(tensor)
    if any(step == 0 and size > 1 for step, size in zip(stride, tensor.shape, strict=True)):
        return tensor
    return torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype).copy_(tensor)


def _carry_out(operation: dict[str, Any], values: dict[int, Any], replayed: Replayed) -> None:
    function = _find(operation["name"])
    args = [_decode(each, values) for each in operation["args"]]
    kwargs = {key: _decode(each, values) for key, each in operation["kwargs"].items()}
    try:
        output = function(*args, **kwargs)
    except (RuntimeError, NotImplementedError, TypeError) as error:
        line = " ".join(str(error).split())[:200]
        raise ConfigError(
            f"{operation['name']} cannot be carried out here ({line}): replay it with torch "
            f"{replayed.content['torch']}"
        ) from None
    made = [each for each in _flat(output) if isinstance(each, torch.Tensor)]
    bad = ""
    for index, each in zip(operation["outputs"], made, strict=False):
        values[index] = each
        bad = bad or kind_of_bad(each)
    if operation["outputs"]:
        replayed.count += 1
    if operation["name"].startswith(_BLANK):
        return  # whatever was in memory
    if operation["outputs"]:
        replayed.same = replayed.same and bad == operation["bad"]
    kind = replayed.content["found"]["kind"]
    first = replayed.first
    if bad and (first is None or (bad == kind and first["bad"] != kind)):
        replayed.first = operation | {"bad": bad}


def _find(name: str) -> Any:
    """An operation of aten by its name. Raises `ConfigError` for any other, and for those that
    read files."""
    space, _, rest = name.partition(".")
    packet, _, overload = rest.partition(".")
    if space not in ("aten", "prims") or packet == "from_file":
        raise ConfigError(f"{name} is no operation of torch's own: it cannot be replayed")
    try:
        return getattr(getattr(getattr(torch.ops, space), packet), overload or "default")
    except AttributeError:
        raise ConfigError(
            f"this torch has no {name}: replay it with the one that watched"
        ) from None


def _decode(given: Any, values: dict[int, Any]) -> Any:
    if isinstance(given, list):
        return [_decode(each, values) for each in given]
    if not isinstance(given, dict):
        return given
    ((kind, value),) = given.items()
    if kind == "tensor":
        return values[value]
    if kind == "float":
        return float(value)
    if kind == "device":
        return torch.device(value if torch.device(value).type == "cpu" or (
            torch.cuda.is_available()) else "cpu")  # fmt: skip
    if kind in ("dtype", "layout", "memory_format"):
        return getattr(torch, str(value))
    raise ConfigError(f"an argument of an unknown kind ({value}): it cannot be replayed")


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [inner for each in value for inner in _flat(each)]
    return [value]
