"""Randomness that is a function of where it is used, and the state of the generators that are not.

`mix` turns (seed, epoch, index, …) into 64 well-stirred bits; everything that must not depend on
history (sample order, augmentation) is computed from it. The functions here never seed what they do
not restore, except `seed_everything`, whose purpose it is.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import torch

from trueloop import _options
from trueloop.errors import ConfigError
from trueloop.shapes import ListOf, Maybe, OneOf, TupleOf, Where

__all__ = ["for_sample", "seed_everything", "seed_rank"]

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15

_WORDS = 624  # of a Mersenne twister


def _is_torch_state(state: torch.Tensor) -> bool:
    torch.Generator().set_state(state.cpu())
    return True


def _is_numpy_state(state: Any) -> bool:
    name, keys, position, has_gauss, cached = state
    # numpy reads at the saved position, even if that is outside its words.
    if len(keys) != _WORDS or not 0 <= position <= _WORDS:
        return False
    words = np.asarray(keys, dtype=np.uint32)
    np.random.RandomState().set_state((name, words, position, has_gauss, cached))
    return True


def _is_python_state(state: Any) -> bool:
    version, words, gauss = state
    random.Random().setstate((version, tuple(words), gauss))
    return True


CPU_STATE = {
    "torch": Where(torch.Tensor, _is_torch_state, "a state of torch's generator"),
    "numpy": Where(
        TupleOf(str, ListOf(int), int, int, float), _is_numpy_state, "a state of numpy's"
    ),
    "random": Where(
        TupleOf(int, ListOf(int), OneOf(None, float)), _is_python_state, "one of random's"
    ),
}
"""The form of the state that `set_rng_state` takes, apart from accelerators."""
STATE = {**CPU_STATE, "cuda": Maybe(ListOf(torch.Tensor))}
"""The form of the state that `set_rng_state` takes."""

# In the environment, because spawned worker processes inherit that and nothing else.
_BASE_SEED = "TRUELOOP_SEED"


def mix(*words: int) -> int:
    """64 bits that depend on every bit of every word and on their order.

    Each word is absorbed through the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast
    splittable pseudorandom number generators", OOPSLA 2014).
    """
    state = 0
    for word in words:
        z = (state + _GOLDEN + (word & _MASK)) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        state = z ^ (z >> 31)
    return state


def mix_array(words: np.ndarray, *prefix: int) -> np.ndarray:
    """`mix(*prefix, word)` for each word of a uint64 array, vectorised; a new uint64 array."""
    z = words.astype(np.uint64) + np.uint64((mix(*prefix) + _GOLDEN) & _MASK)
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def check_seed(seed: int) -> int:
    """`seed` itself if it is an integer from 0 to 2**63 - 1; `ConfigError` otherwise."""
    if not _options.is_integer(seed) or not 0 <= seed < 2**63:
        raise ConfigError(
            f"seed={_options.shown(seed)} is not an integer from 0 to 2**63 - 1: write e.g. seed=0"
        )
    return int(seed)


def seed_everything(seed: int, deterministic: bool = True) -> None:
    """Seed torch (every device), numpy and `random`; choose deterministic algorithms if asked.

    Args:
        seed: an integer from 0 to 2**63 - 1.
        deterministic: True switches cuDNN's autotuner off and makes torch prefer deterministic
            implementations, with a warning (not an error) where an operation has none. The first
            use of cuBLAS must come after this call, since it reads `CUBLAS_WORKSPACE_CONFIG` once.

    Raises:
        ConfigError: the seed is out of range.
    """
    _options.flag("deterministic", deterministic)
    os.environ[_BASE_SEED] = str(check_seed(seed))
    seed_generators(seed)
    torch.use_deterministic_algorithms(deterministic, warn_only=True)
    torch.backends.cudnn.benchmark = not deterministic
    if deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def seed_generators(seed: int) -> None:
    """Seed the global generators of torch, numpy and `random`, as `seed_everything` does."""
    torch.manual_seed(seed)
    np.random.seed(mix(seed, 1) & 0xFFFFFFFF)
    random.seed(mix(seed, 2))


def seed_rank(seed: int, rank: int) -> None:
    """Seed one rank's global generators by (seed, rank), for its own draws, such as dropout masks.

    Args:
        seed: an integer from 0 to 2**63 - 1.
        rank: the rank; 0 keeps the generators that it has.

    Raises:
        ConfigError: the seed is out of range.
    """
    if rank:
        word = mix(check_seed(seed), 3, rank)
        torch.manual_seed(word >> 1)
        np.random.seed(word & 0xFFFFFFFF)
        random.seed(word)


def for_sample(epoch: int, index: int, seed: int | None = None) -> torch.Generator:
    """A CPU generator that depends only on (seed, epoch, sample index).

    For use inside a data set that wants a private generator: the draws are the same whichever
    worker makes them, after any resume, and differ from epoch to epoch.

    Args:
        epoch: the epoch, from 0.
        index: the sample's index in the data set, from 0.
        seed: None: that of the last `seed_everything` in this process or its parent (0 before the
            first).

    Returns:
        A new generator.

    Raises:
        ConfigError: a value is not an integer in range.
    """
    _options.whole("epoch", epoch, 0)
    _options.whole("index", index, 0)
    base = int(os.environ.get(_BASE_SEED, "0")) if seed is None else check_seed(seed)
    return torch.Generator().manual_seed(mix(base, epoch, index) >> 1)


def seed_sample(seed: int, epoch: int, index: int) -> None:
    """Point the process's CPU generators (torch, numpy, `random`) at one sample of one epoch.

    Call it inside `rng_preserved()` where the process itself has draws to make.
    """
    word = mix(seed, epoch, index)
    # Not torch.manual_seed: that also queues a call for every accelerator, once per sample.
    torch.default_generator.manual_seed(word >> 1)
    np.random.seed(word & 0xFFFFFFFF)
    random.seed(word)


def rng_state() -> dict[str, Any]:
    """The state of every global generator, as plain data and tensors (no pickle needed to load)."""
    numpy_state = np.random.get_state()  # the legacy generator: what user code draws on
    name, keys, position, has_gauss, cached = cast(tuple[Any, ...], numpy_state)
    version, words, gauss = random.getstate()
    state: dict[str, Any] = {
        "torch": torch.get_rng_state(),
        "numpy": [str(name), keys.tolist(), int(position), int(has_gauss), float(cached)],
        "random": [version, list(words), gauss],
    }
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def set_rng_state(state: dict[str, Any]) -> None:
    """Put every global generator back to what `rng_state` returned."""
    torch.set_rng_state(state["torch"].cpu())
    name, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((name, np.asarray(keys, dtype=np.uint32), position, has_gauss, cached))
    version, words, gauss = state["random"]
    random.setstate((version, tuple(words), gauss))
    if "cuda" in state and torch.cuda.is_available():
        # There may have been more devices where it was saved.
        torch.cuda.set_rng_state_all(state["cuda"][: torch.cuda.device_count()])


def reseed_from_state(*words: int) -> None:
    """Reseed the process's generators, from what they would draw next and from `words`.

    The seed of `seed_everything` stays: it is what `for_sample` goes by.
    """
    drawn = int(torch.randint(0, 2**62, ()))
    word = mix(drawn, *words)
    torch.manual_seed(word >> 1)
    np.random.seed(mix(word, 1) & 0xFFFFFFFF)
    random.seed(mix(word, 2))


@contextmanager
def rng_preserved() -> Iterator[None]:
    """Leave the CPU generators of torch, numpy and `random` as they were found."""
    torch_state = torch.get_rng_state()
    numpy_state = np.random.get_state()
    python_state = random.getstate()
    try:
        yield
    finally:
        torch.set_rng_state(torch_state)
        np.random.set_state(numpy_state)
        random.setstate(python_state)
