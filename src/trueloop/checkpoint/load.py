"""A saved state read again: verified, and the newest that is good."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from trueloop import _options, device as devices, ranks
from trueloop.checkpoint import best as bests, contents, sharded, store
from trueloop.checkpoint.state import relocated
from trueloop.errors import RunError

State = dict[str, Any]

_WHAT = "the other ranks' look at a checkpoint"


def load_checkpoint(
    path: str | Path,
    which: str = "last",
    map_location: str | torch.device | None = None,
    dtype: torch.dtype | None = None,
) -> State:
    """The state in one checkpoint, or in the newest good (`last`) or the `best` one of a folder.

    Every byte is verified, and nothing in a file is executed. If the newest checkpoint is damaged,
    a warning is printed, and the one before it is loaded. One that a different version of torch has
    written is loaded, with a warning.

    Under several ranks every rank calls it, and all of them get the same checkpoint. Without a
    `map_location`, the large tensors of one that several ranks have written then stay on the disk
    (here they have a shape, and no values) until a resume reads each rank's part of them. With one,
    a single rank may call it, and gets them as a whole.

    Args:
        path: a checkpoint, or a folder of checkpoints.
        which: `last` or `best`, of a folder.
        map_location: the device for weights, gradients and the optimizer's tensors (`meta`: only
            shapes); generators and counters stay on the CPU. None is the CPU, from where a resume
            puts each part where it belongs.
        dtype: floating-point weights and gradients are converted to it, for a model of that dtype;
            None: as they are.

    Returns:
        The state, for `fit(resume_from=...)`; of the best one with `epoch` and `scores` beside it.

    Raises:
        RunError: no checkpoint is whole.
        DeviceError: the device is not there.
        ConfigError: a different argument cannot work.
    """
    path = _options.path("path", path)
    _options.choice("which", which, ("last", "best"))
    _options.floating_dtype(dtype)
    device = torch.device("meta")
    if str(map_location) != "meta":
        device = devices.pick("cpu" if map_location is None else map_location)
    together = map_location is None and ranks.is_distributed()
    found, more = (
        ranks.on_main(lambda: _place(path, which), _WHAT) if together else _place(path, which)
    )
    read = _read_with_all if together else _read_whole
    if found is None:
        found, state = _newest_good(path, read, together)
    else:
        state = read(found)
    if (note := store.other_torch(found)) and (ranks.is_main() or not together):
        warnings.warn(note, UserWarning, stacklevel=2)
    if not isinstance(state, sharded.ShardedState):
        return relocated(state, device, dtype) | more
    return state.with_parts(relocated(state, None, dtype) | more)


def opened_checkpoint(path: Path) -> State:
    """Like `load_checkpoint(path)` in one process, with the large tensors of a checkpoint that
    several ranks have written still on the disk (`ShardedState`)."""
    found, _ = _place(path, "last")
    return _newest_good(path, _read_alone)[1] if found is None else _read_alone(found)


def has_checkpoint(folder: Path, which: str = "last") -> bool:
    """Whether there is something for `load_checkpoint(folder, which)` to load, whole or not."""
    return bool(store.names_in(folder)) and (which == "last" or bests.is_there(folder))


def _place(path: Path, which: str) -> tuple[Path | None, dict[str, Any]]:
    """The checkpoint to read, None for the newest good one; and what to say beside its state."""
    if (path / store.MANIFEST).exists():
        return path, {}
    if not store.names_in(path):
        why = "the run ended before it saved one"
        if not path.exists():
            why = "no folder is there: check the path, a run makes it when it first saves"
        elif not path.is_dir():
            why = "a file is there: give the folder of a run's checkpoints"
        raise RunError(f"no checkpoint in {path}: {why}")
    if which == "last":
        return None, {}
    mark = bests.marked(path)
    if mark is None:
        raise RunError(f"no best checkpoint in {path}: the run ended before it had a score")
    return path / mark["name"], {
        name: mark[name] for name in ("epoch", "update", "scores") if name in mark
    }


def _read_with_all(path: Path) -> State:
    """The state in the checkpoint `path`; each rank verifies its share of the large files."""
    return ranks.on_all(lambda: _read_part(path, (ranks.rank(), ranks.world_size())), _WHAT)


def _read_alone(path: Path) -> State:
    return _read_part(path, (0, 1))


def _read_whole(path: Path) -> State:
    state = _read_alone(path)
    return state.whole() if isinstance(state, sharded.ShardedState) else state


def _read_part(path: Path, part: tuple[int, int]) -> State:
    """The state, every byte and every part of it as it should be, except for files of shards that a
    different rank verifies."""
    state = store.read(path, part)
    if store.manifest(path)["format"] <= store.OF_ONE_PROCESS:
        contents.check(state, path)
        return state
    opened = sharded.opened(path, state, ranks.rank(), ranks.world_size())
    contents.check(opened.imagined(), path)
    return opened


def _newest_good(
    folder: Path, read: Callable[[Path], State], together: bool = False
) -> tuple[Path, State]:
    problem: RunError | None = None
    names = store.names_in(folder)
    if together:
        names = ranks.from_main(names, _WHAT)
    for name in reversed(names):
        try:
            state = read(folder / name)
        except store.NewerError:
            raise  # what is good must not be taken for damaged, and given up
        except RunError as error:
            problem = problem or error
        else:
            if problem is not None and (ranks.is_main() or not together):
                warnings.warn(f"{problem}; going back to {name}", RuntimeWarning, stacklevel=3)
            return folder / name, state
    assert problem is not None
    raise problem
