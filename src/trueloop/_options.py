"""Checks of arguments: each function returns the value that it was given, or raises `ConfigError`.

The public functions and classes call them when they are called themselves, so that a wrong argument
is reported there and not at the first batch.
"""

from __future__ import annotations

import inspect
import itertools
import math
import os
from collections.abc import Collection, Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import torch
from torch import nn

from trueloop.errors import ConfigError, nearest

_LONGEST = 60


def shown(value: Any) -> str:
    """A wrong value as a message has it, on one line: itself if it is short, else its kind."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        text = repr(value)
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if inspect.isroutine(value):
        return f"the function {getattr(value, '__name__', '?')}"
    if isinstance(value, (list, tuple)) and len(value) <= 4:
        inner = ", ".join(shown(part) for part in value)
        text = f"[{inner}]" if isinstance(value, list) else f"({inner})"
        if len(text) <= _LONGEST:
            return text
    return kind_of(value)


def kind_of(value: Any) -> str:
    """A value in two or three words: "a list", "an Adam", "the class Linear"."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if value is None:
        return "None"
    name = type(value).__name__
    # As they are spoken: an SGD, an MSELoss, a Linear.
    letters = "AEFHILMNORSX" if name[:2].isupper() else "AEIOUaeio"
    return f"{'an' if name[0] in letters else 'a'} {name}"


def number(option: str, value: Any, example: str = "1.0") -> float:
    """A finite real number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ConfigError(f"{option}={shown(value)} is not a number: write e.g. {option}={example}")
    return float(value)


def positive(option: str, value: Any, example: str = "1.0") -> float:
    """A finite number above 0."""
    if number(option, value, example) <= 0:
        raise ConfigError(f"{option}={shown(value)} must be above 0: write e.g. {option}={example}")
    return float(value)


def not_negative(option: str, value: Any, example: str = "0.0") -> float:
    """A finite number of at least 0."""
    if number(option, value, example) < 0:
        raise ConfigError(
            f"{option}={shown(value)} must not be below 0: write e.g. {option}={example}"
        )
    return float(value)


def share(option: str, value: Any, *, below_one: bool = False, example: str = "0.1") -> float:
    """A number from 0 to 1; `below_one`: 1 itself is too much."""
    if not 0 <= number(option, value, example) <= 1 or (below_one and value == 1):
        limit = "below 1" if below_one else "1"
        raise ConfigError(
            f"{option}={shown(value)} must be from 0 to {limit}: write e.g. {option}={example}"
        )
    return float(value)


def are_quantiles(values: Any, least: int = 1) -> bool:
    """Whether these are at least so many numbers between 0 and 1, both excluded, that ascend."""
    if not isinstance(values, (list, tuple)) or len(values) < least:
        return False
    if not all(isinstance(one, Real) and not isinstance(one, bool) for one in values):
        return False
    edges = (0, *values, 1)
    return all(low < high for low, high in itertools.pairwise(edges))


def quantiles(option: str, values: Any, least: int = 1) -> list[float]:
    """Numbers as `are_quantiles` takes them."""
    if not are_quantiles(values, least):
        given = list(values) if isinstance(values, (list, tuple)) else shown(values)
        count = "" if least == 1 else f"{least} or more "
        raise ConfigError(
            f"{option}={given!s:.100} must be {count}numbers between 0 and 1 that ascend: write "
            f"e.g. {option}=(0.05, 0.5, 0.95)"
        )
    return [float(one) for one in values]


def whole(option: str, value: Any, least: int = 1, example: int | None = None) -> int:
    """An integer from `least` to 2**63 - 1; numpy's integers count, bools do not."""
    if not is_integer(value) or not least <= value < 2**63:
        example = least if example is None else example
        raise ConfigError(
            f"{option}={shown(value)} is not an integer of at least {least}: write e.g. "
            f"{option}={example}"
        )
    return int(value)


def is_integer(value: Any) -> bool:
    """Whether it is an integer, Python's or numpy's, and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def flag(option: str, value: Any) -> bool:
    """True or False, and nothing that counts as one of them."""
    if not isinstance(value, bool):
        raise ConfigError(
            f"{option}={shown(value)} is neither True nor False: write {option}=True or "
            f"{option}=False"
        )
    return value


def choice(option: str, value: Any, known: Collection[str]) -> str:
    """One of the words in `known`."""
    if not isinstance(value, str) or value not in known:
        listed = " or ".join(f"{option}={name!r}" for name in known)
        raise ConfigError(f"{option}={shown(value)} is unknown: write {listed}")
    return value


def by_name(what: str, value: Any, known: Iterable[str]) -> str:
    """A name of `known`; the message suggests the nearest."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        hint = nearest(value if isinstance(value, str) else "", names)
        raise ConfigError(f"unknown {what} {shown(value)}: {hint}")
    return value


def path(option: str, value: Any) -> Path:
    """A path, with `~` expanded."""
    if not isinstance(value, (str, os.PathLike)) or not str(value):
        raise ConfigError(f"{option}={shown(value)} is not a path: write e.g. {option}='runs/one'")
    try:
        return Path(value).expanduser()
    except (RuntimeError, TypeError) as error:  # no home folder; a path of bytes
        raise ConfigError(
            f"{option}={shown(value)} is not a path ({error}): write e.g. {option}='runs/one'"
        ) from None


def floating_dtype(value: Any) -> torch.dtype | None:
    """A floating-point dtype of torch's, or None."""
    if value is None or (isinstance(value, torch.dtype) and value.is_floating_point):
        return value
    raise ConfigError(
        f"dtype={value!s:.60} is not a floating-point dtype: write e.g. dtype=torch.float32"
    )


def text(option: str, value: Any, example: str) -> str:
    """A string that is not empty."""
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{option}={shown(value)} is not a name: write e.g. {option}={example!r}")
    return value


def mapping(option: str, value: Any, example: str) -> Mapping[str, Any]:
    """A dict, or an object that can replace one."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{option}={shown(value)} is not a dict: write e.g. {option}={example}")
    return value


def model(value: Any, call: str) -> nn.Module:
    """A module; `call` is what to write instead, e.g. "Step(model, optimizer, loss_fn)"."""
    if isinstance(value, nn.Module):
        return value
    remedy = f"write {call}"
    if isinstance(value, type) and issubclass(value, nn.Module):
        remedy = f"make one first, {value.__name__}(...), and {remedy}"
    raise ConfigError(f"the model must be a torch.nn.Module, not {shown(value)}: {remedy}")


def takes(function: Any, count: int) -> bool:
    """Whether `function` can be called with `count` positional arguments, according to its
    signature.

    What has no signature (a builtin) is taken to. Of a module its `forward` decides.
    """
    target = function.forward if isinstance(function, nn.Module) else function
    try:
        inspect.signature(target).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def function(option: str, value: Any, arguments: str, example: str) -> Any:
    """A callable that takes `arguments`, written as "batch, draws"; `example` is what to write."""
    if isinstance(value, type) and not takes(value, len(arguments.split(", "))):
        raise ConfigError(
            f"{option} is the class {value.__name__} itself: write {option}={value.__name__}(...)"
        )
    if not callable(value):
        raise ConfigError(f"{option}={shown(value)} is not a function: write e.g. {example}")
    if not takes(value, len(arguments.split(", "))):
        name = getattr(value, "__name__", type(value).__name__)
        raise ConfigError(
            f"{option} is called with ({arguments}), and {name} does not take that: "
            f"write e.g. {example}"
        )
    return value
