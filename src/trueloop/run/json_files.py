"""Small files that are whole or absent, and JSON that can represent every float."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trueloop.checkpoint import write_atomic
from trueloop.errors import RunError
from trueloop.files import cannot_read, read_text

# None of a run's JSON files comes near it; the log is none of them.
_MOST_BYTES = 256_000_000
# JSON has no NaN and no infinity; a bare NaN in the file would stop every strict reader.
_SPELLED = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def spell(value: float) -> float | str:
    """`value` as JSON can represent it: NaN and the infinities become strings."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def unspell(value: Any) -> Any:
    """Undo `spell` throughout a value of numbers, not names."""
    if isinstance(value, str):
        return _SPELLED.get(value, value)
    if isinstance(value, list):
        return [unspell(item) for item in value]
    if isinstance(value, dict):
        return {key: unspell(item) for key, item in value.items()}
    return value


def plain(value: Any, where: str) -> Any:
    """`value` as plain data that JSON can represent; raises `RunError` naming `where` if it cannot
    be.

    Tuples become lists; paths, devices and dtypes become text; numpy's numbers become Python's.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return spell(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
        return [plain(item, f"{where}[{k}]") for k, item in enumerate(items)]
    if isinstance(value, (np.generic, np.ndarray)):
        return plain(value.tolist(), where)
    if isinstance(value, (Path, torch.device, torch.dtype)):
        return str(value)
    raise RunError(
        f"{where} is a {type(value).__name__}, which JSON cannot represent: give numbers, text, "
        "lists and dicts"
    )


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write `value` as indented JSON, atomically. Raises `RunError` if it is not plain data."""
    text = json.dumps(plain(value, path.stem), indent=2, ensure_ascii=False, allow_nan=False)
    # A name with a lone surrogate (a file name in no encoding) must not stop a run.
    write_atomic(path, (text + "\n").encode("utf-8", "backslashreplace"))


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; raises `RunError` naming the file if it is missing or corrupt."""
    try:
        value = json.loads(read_text(path, _MOST_BYTES))
    except FileNotFoundError:
        raise RunError(f"{path} is missing: restore it or train the run again") from None
    except OSError as error:
        raise RunError(cannot_read(path, error)) from None
    except RecursionError:
        raise RunError(
            f"{path} is corrupt (nested too deep): restore it or train the run again"
        ) from None
    except ValueError as error:
        raise RunError(f"{path} is corrupt ({error}): restore it or train the run again") from None
    if not isinstance(value, dict):
        raise RunError(f"{path} is corrupt (no JSON object): restore it or train the run again")
    return value
