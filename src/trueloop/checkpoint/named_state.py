"""State of the user's own that a run depends on, saved and restored with the rest, by name."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor

from trueloop.errors import ConfigError, RunError

_LEAVES = (str, bytes, int, float, complex, bool, type(None))
_WAYS = (
    "an object with state_dict and load_state_dict, or something that can be changed in place: a "
    "dict, a "
    "list, a deque, a tensor or a torch.Generator"
)


def check_named(state: Any) -> dict[str, Any]:
    """`state` as a dict, if each of its values can be saved and restored; else `ConfigError`."""
    if not isinstance(state, Mapping):
        raise ConfigError(
            f"state={type(state).__name__} has no names: write state={{'ema': ema}} with what the "
            "run depends on"
        )
    for name, value in state.items():
        if not isinstance(name, str):
            raise ConfigError(f"state has the name {name!r}, which is not text: write e.g. 'ema'")
        if not _is_object(value) and not isinstance(value, _IN_PLACE):
            raise ConfigError(
                f"state[{name!r}] is of type {type(value).__name__}, which a resume cannot change: "
                f"give {_WAYS}; e.g. counters = {{{name!r}: …}}"
            )
    return dict(state)


_IN_PLACE = (dict, list, deque, Tensor, torch.Generator)


def capture_named(state: Mapping[str, Any]) -> dict[str, Any]:
    """The current content of each value, as plain data and tensors, some of them live.

    Raises `RunError` for what a checkpoint cannot store.
    """
    found = {}
    for name, value in state.items():
        held = _held(name, value)
        if why := _not_plain(held, ""):
            raise RunError(
                f"state[{name!r}] contains {why}, which a checkpoint cannot store: use numbers, "
                "text, "
                "tensors, dicts, lists and tuples"
            )
        found[name] = held
    return found


def restore_named(state: Mapping[str, Any], saved: Mapping[str, Any], undo: ExitStack) -> None:
    """Restore each value from what was saved under its name; `undo` then reverts it.

    Raises `RunError` for names that are only in one of the two, and for a value that cannot be
    restored.
    """
    for name in state:
        if name not in saved:
            raise RunError(
                f"the checkpoint has no state named {name!r}: it was saved without it; remove it "
                "from state=…, or start a new run"
            )
    for name in saved:
        if name not in state:
            raise RunError(
                f"the checkpoint contains the state of {name!r}, which would be lost: give "
                f"Checkpoints(…, state={{{name!r}: …}})"
            )
    for name, value in state.items():
        undo.callback(_keep(name, value))
        try:
            _give(value, saved[name])
        except Exception as error:  # of the user's own load_state_dict
            why = " ".join(f"{type(error).__name__}: {error}".split())[:160]
            raise RunError(
                f"state[{name!r}] does not accept its state in the checkpoint ({why}): build it as "
                "in the saved run"
            ) from error


def _is_object(value: Any) -> bool:
    return all(callable(getattr(value, name, None)) for name in ("state_dict", "load_state_dict"))


def _held(name: str, value: Any) -> Any:
    if _is_object(value):
        return value.state_dict()
    if isinstance(value, torch.Generator):
        return value.get_state()
    return list(value) if isinstance(value, deque) else value


def _give(value: Any, saved: Any) -> None:
    if _is_object(value):
        value.load_state_dict(saved)
    elif isinstance(value, torch.Generator):
        value.set_state(saved.cpu())
    elif isinstance(value, Tensor):
        if not isinstance(saved, Tensor) or (saved.shape, saved.dtype) != (
            value.shape,
            value.dtype,
        ):
            raise TypeError(f"a tensor of {value.dtype} and shape {tuple(value.shape)} is needed")
        with torch.no_grad():
            value.copy_(saved)
    elif isinstance(value, dict):
        if not isinstance(saved, dict):
            raise TypeError(f"a dict is needed, not {type(saved).__name__}")
        found = {key: _beside(value.get(key), part) for key, part in saved.items()}
        value.clear()
        value.update(found)
    else:
        if not isinstance(saved, (list, tuple)):
            raise TypeError(f"a list is needed, not {type(saved).__name__}")
        found_list = copy.deepcopy(list(saved))
        value.clear()
        value.extend(found_list)


def _beside(here: Any, saved: Any) -> Any:
    """A copy of `saved`, on the device on which its like is now."""
    if isinstance(here, Tensor) and isinstance(saved, Tensor):
        return saved.to(here.device, copy=True)
    return copy.deepcopy(saved)


def _keep(name: str, value: Any) -> Callable[[], None]:
    """Remember the content of the value; returns a function that restores it."""
    held = copy.deepcopy(_held(name, value))
    return lambda: _give(value, held)


def _not_plain(value: Any, where: str) -> str:
    """The part of `value` that could not be read back without running code, and its place; empty if
    none."""
    if type(value) in _LEAVES or isinstance(value, Tensor):
        return ""
    if isinstance(value, dict):
        parts = [(f"{where}[{key!r}]", part) for key, part in value.items()]
        parts += [(f"a key of {where or 'it'}", key) for key in value]
    elif type(value) in (list, tuple):
        parts = [(f"{where}[{k}]", part) for k, part in enumerate(value)]
    else:
        kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        return f"a value of type {kind}" + (f" at {where}" if where else "")
    return next(filter(None, (_not_plain(part, place) for place, part in parts)), "")
