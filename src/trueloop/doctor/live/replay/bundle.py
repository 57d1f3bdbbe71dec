"""A bundle: a folder with a computation that gave NaN or infinity, to be run again.

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
import shutil
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

import torch

from trueloop.doctor.live.nonfinite import recent_calls
from trueloop.doctor.live.nonfinite.operation_trace import Operation, OperationTrace, kind_of_bad
from trueloop.doctor.live.replay import allowed_ops, bundle_format
from trueloop.doctor.live.replay.allowed_ops import shown
from trueloop.doctor.live.replay.bundle_format import GENERATORS, MOST_TAPE, TAPE, TENSORS, VERSION
from trueloop.doctor.live.replay.op_runner import CannotRunError, OpRunner
from trueloop.doctor.model.findings import Location
from trueloop.errors import ConfigError

if TYPE_CHECKING:
    from trueloop.doctor.live.nonfinite.forensics import Found
    from trueloop.doctor.live.replay.bundle_format import Bundle, SavedOperation


def write(folder: str, found: Found, place: Location, update: int) -> str | None:
    """Write a bundle into a new folder below `folder`; its path. None if there is nothing to run
    again, if not all of it could be kept, or if it has operations that a bundle may not contain.
    Raises `OSError` where it cannot be written."""
    tape = found.tape
    if tape is None or not tape.whole or not tape.operations:
        return None
    if not any(made.bad for made in tape.operations) and not any(held.bad for held in tape.values):
        return None
    operations = [_operation(each) for each in tape.operations]
    if not all(map(allowed_ops.fits, operations)):
        return None
    written = json.dumps(
        {
            "version": VERSION,
            "torch": torch.__version__,
            "update": update,
            "place": list(place),
            "found": {
                key: _written(getattr(found.origin, key))
                for key in ("what", "kind", "rows", "samples")
            },
            "values": [
                {
                    "source": list(each.source) if each.source is not None else None,
                    "bad": each.bad,
                    "stride": list(each.data.stride()) if each.data is not None else None,
                }
                for each in tape.values
            ],
            "operations": operations,
        }
    )
    if len(written) > MOST_TAPE:
        return None
    path = _new_folder(folder)
    try:
        _fill(path, written, tape, found)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)  # whole or not at all
        raise
    return path


def _fill(path: str, written: str, tape: OperationTrace, found: Found) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    tensors = {
        str(index): _plain(value.data)
        for index, value in enumerate(tape.values)
        if value.data is not None
    }
    with open(os.path.join(path, TAPE), "w", encoding="utf-8") as file:
        file.write(written)
    try:
        save_file(tensors, os.path.join(path, TENSORS))
    except SafetensorError as error:  # of a disk that is full
        raise OSError(str(error)) from None
    with open(os.path.join(path, GENERATORS), "w", encoding="utf-8") as file:
        json.dump(_generators(found.rng), file)


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


def _plain(tensor: torch.Tensor) -> Any:
    """As a file of safetensors has it: on the CPU, and without gaps."""
    made = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().clone()
    return torch.view_as_real(made) if made.is_complex() else made


def _written(value: object) -> Any:
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
    states = recent_calls.rng_state() if states is None else states
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


# ---------------------------------------------------------------------- run again


class Replayed:
    """The result of running a bundle's operations again."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.first: tuple[SavedOperation, str] | None = None
        """The first operation whose result is not finite in the way that the loss is not, and what
        it makes; a mask of -inf comes before a NaN, and is not a fault."""
        self.outside: list[tuple[str, str, str]] = []
        """(kind, name, content) of each value that was not finite before any operation."""
        self.same = True
        """The same values are finite as when the bundle was written."""
        self.count = 0


def replay(path: str) -> Replayed:
    """Run a bundle's operations again, on the CPU. Raises `ConfigError` for a file that is not a
    bundle, has forbidden content, or cannot run on this machine."""
    bundle = bundle_format.read(path)
    replayed = Replayed(bundle)
    values = bundle.tensors
    runner = OpRunner()
    for index, value in sorted(values.items()):
        runner.hold(value)
        bad = kind_of_bad(value)
        source = bundle.values[index].source
        if bad and source:
            replayed.outside.append((*source, bad))
    with (
        torch.random.fork_rng(devices=[]), torch.no_grad(), torch.autocast("cpu", enabled=False),
        warnings.catch_warnings(),
    ):  # fmt: skip
        warnings.simplefilter("ignore")  # the program has had them
        torch.set_rng_state(bundle.generator)
        for operation in bundle.operations:
            _run(operation, values, runner, replayed)
    return replayed


def _run(
    operation: SavedOperation, values: dict[int, Any], runner: OpRunner, replayed: Replayed
) -> None:
    try:
        made = runner.run(operation.call, values, len(operation.outputs))
    except CannotRunError as error:
        raise ConfigError(
            f"{operation.name} cannot be run here ({error}): watch the program again, or replay it "
            f"with torch {shown(replayed.bundle.torch)}"
        ) from None
    bad = ""
    for index, each in zip(operation.outputs, made, strict=True):
        values[index] = each
        runner.hold(each)
        bad = bad or kind_of_bad(each)
    is_defined = all(map(runner.is_defined, made))
    for index in operation.last:
        runner.release(values.pop(index))
    if not made:
        return
    replayed.count += 1
    if not is_defined:
        return  # whatever was in memory: what is computed from it says more
    replayed.same = replayed.same and bad == operation.bad
    kind, first = replayed.bundle.kind, replayed.first
    if bad and (first is None or (bad == kind and first[1] != kind)):
        replayed.first = operation, bad
