"""The checkpoints of a run: written beside the training, the last few and the best one kept."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trueloop.checkpoint import store
from trueloop.checkpoint.atomic import write_atomic
from trueloop.checkpoint.state import capture, place_of, restore
from trueloop.errors import ConfigError, RunError
from trueloop.feed import Feed
from trueloop.records import EvalRecord, is_better, monitored
from trueloop.step import Step
from trueloop.step.schedule import resolve_mode

BEST = "best.json"
# Writing the state after every epoch of a few milliseconds would cost more than the epochs.
_SECONDS = 5.0
_EVERY = re.compile(r"(\d+(?:\.\d+)?) ?(update|epoch|minute)s?")


class Checkpoints:
    """Keeps the last `keep_last` checkpoints in `folder`, and the best by the score `keep_best`.

    - `every`: how often the state is written beside the best epochs and the end: "50 updates",
      "2 epochs", "10 minutes"; None is at the end of an epoch, if five seconds have passed.
    - `asynchronous`: the state is copied, and written while the training goes on. At most one
      write is under way; the next save, and the end of the run, wait for it.
    - `on_error`: what to do when a checkpoint cannot be written (a full disk): `stop` raises
      `RunError` at the next save or at the end, `continue` warns and goes on. The checkpoints
      before it are intact either way.

    An older checkpoint is deleted only when a newer one is on disk and verified.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        keep_last: int = 3,
        keep_best: str | None = "val_loss",
        every: str | None = None,
        asynchronous: bool = True,
        on_error: str = "stop",
    ) -> None:
        if isinstance(keep_last, bool) or not isinstance(keep_last, int) or keep_last < 1:
            raise ConfigError(f"keep_last={keep_last!r} keeps nothing: write 1 or more")
        if on_error not in ("stop", "continue"):
            raise ConfigError(f"on_error={on_error!r} is unknown: write 'stop' or 'continue'")
        self.folder = Path(folder)
        self.keep_last = keep_last
        self.keep_best = keep_best
        self.asynchronous = asynchronous
        self.on_error = on_error
        self._amount, self._unit = parse_every(every)
        self._spare: Any = None
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._saved_at = time.monotonic()

    def is_due(self, *, updates: int, epochs: int | None = None) -> bool:
        """Whether it is time to save: after an update, or (`epochs` ended) after an epoch."""
        if self._unit == "minute":
            return time.monotonic() - self._saved_at >= 60 * self._amount
        if self._unit == "update":
            return epochs is None and updates % self._amount == 0
        if epochs is None:
            return False
        if self._unit == "epoch":
            return epochs % self._amount == 0
        return time.monotonic() - self._saved_at >= _SECONDS

    def begin(self, resumed: tuple[int, int, int] | None) -> bool:
        """Make the folder fit for a run that begins at (epoch, batch, update), or anew with None.

        What lies beyond the place from which a run goes on is damaged or a future that was given
        up, and is removed. Returns whether that place is already saved in this folder. Raises
        `RunError` for a new run where another one has checkpoints.
        """
        names = store.names_in(self.folder)
        if resumed is None and names:
            raise RunError(
                f"{self.folder} holds the checkpoints of another run: go on with it "
                "(resume_from=load_checkpoint(folder)), or choose another folder"
            )
        if names:
            store.remove_litter(self.folder)
            here = store.name_of(*resumed) if resumed is not None else ""
            later = names[names.index(here) + 1 :] if here in names else []
            if (_marked(self.folder) or {}).get("name") in later:
                (self.folder / BEST).unlink()
            for name in later:
                shutil.rmtree(self.folder / name, ignore_errors=True)
            self._mend_mark()
            return here in names
        return False

    def _mend_mark(self) -> None:
        """Mark the latest checkpoint that was the best when it was written: a run may have been
        killed between the writing and the marking."""
        for name in reversed(store.names_in(self.folder)):
            try:
                best = store.manifest(self.folder / name).get("best")
            except RunError:  # a damaged one is not gone on from, and marks nothing
                continue
            if best is not None:
                self._mark(name, best)
                return

    def keep(self, step: Step, feed: Feed, scores: EvalRecord | None = None) -> None:
        """For a loop of your own: save if it is time to.

        Call it after each `step(batch)`, and with the epoch's scores after `step.end_epoch`; the
        best epoch by `keep_best` (with or without its `val_`) is saved and marked as such.
        """
        best = None if scores is None else self._better(step, scores)
        epochs = None if scores is None else step.epoch
        if best is not None or self.is_due(updates=step.updates, epochs=epochs):
            self.save(capture(step, feed), place_of(step), best)

    def resume(self, step: Step, feed: Feed) -> bool:
        """For a loop of your own: go on from the newest good checkpoint; False if there is none.

        Then `for epoch in range(step.epoch, epochs)`, and in it
        `feed.epoch(epoch, start=step.batch)`, are the rest of the run.
        """
        found = has_checkpoint(self.folder)
        if found:
            restore(load_checkpoint(self.folder), step, feed)
        self.begin(place_of(step) if found else None)
        return found

    def _better(self, step: Step, scores: EvalRecord) -> dict[str, Any] | None:
        """What marks this epoch as the best so far; None if it is not."""
        if self.keep_best is None:
            return None
        bare = self.keep_best.removeprefix("val_")
        name = bare if bare in scores.scores else self.keep_best
        value = monitored(scores.scores, name)
        self.wait()
        before = (_marked(self.folder) or {"scores": {}})["scores"].get(name)
        if not is_better(value, before, resolve_mode(self.keep_best, "auto")):
            return None
        return {"epoch": step.epoch - 1, "scores": scores.scores}

    def save(
        self, state: dict[str, Any], place: tuple[int, int, int], best: dict[str, Any] | None = None
    ) -> None:
        """Write `state`, whose next batch is at `place` = (epoch, batch, updates before it).

        `best` (plain data: `epoch`, `scores`) marks it as the best so far. Returns when the state
        is copied; `wait` says when it is on disk.
        """
        self.wait()
        self._saved_at = time.monotonic()
        if not self.asynchronous:
            self._write(state, place, best)
            self._raise()
            return
        self._spare = _copied(state, self._spare)
        self._thread = threading.Thread(
            target=self._write, args=(self._spare, place, best), name="checkpoint"
        )
        self._thread.start()

    def mark_best(self, place: tuple[int, int, int], best: dict[str, Any]) -> None:
        """Mark the checkpoint already saved at `place` as the best so far."""
        self.wait()
        self._mark(store.name_of(*place), best)

    def _mark(self, name: str, best: dict[str, Any]) -> None:
        write_atomic(self.folder / BEST, json.dumps({"name": name, **best}, indent=2).encode())

    def wait(self) -> None:
        """Return when no write is under way; raises (or warns) if the last one failed."""
        self.join()
        self._raise()

    def join(self) -> None:
        """Return when no write is under way, however the last one went."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _write(
        self, state: dict[str, Any], place: tuple[int, int, int], best: dict[str, Any] | None
    ) -> None:
        epoch, batch, update = place
        path = self.folder / store.name_of(*place)
        facts = {
            "epoch": epoch,
            "batch": batch,
            "update": update,
            "time": round(time.time()),
            "best": best,
        }
        try:
            store.write(path, state, facts)
            store.verify(path)
            if best is not None:
                self._mark(path.name, best)
            self._delete_older(path.name)
        except BaseException as error:
            self._failure = error

    def _delete_older(self, newest: str) -> None:
        names = store.names_in(self.folder)
        kept = {*names[-self.keep_last :], newest, (_marked(self.folder) or {}).get("name")}
        for name in names:
            if name not in kept:
                shutil.rmtree(self.folder / name, ignore_errors=True)

    def _raise(self) -> None:
        failure, self._failure = self._failure, None
        if failure is None:
            return
        if self.on_error == "continue" and isinstance(failure, RunError):
            warnings.warn(
                f"{failure}; the run goes on without this checkpoint", RuntimeWarning, stacklevel=3
            )
            return
        raise failure


def load_checkpoint(
    path: str | Path, which: str = "last", map_location: str | torch.device = "cpu"
) -> dict[str, Any]:
    """The state in one checkpoint, or in the newest good (`last`) or the `best` one of a folder.

    Every byte is verified, and nothing in a file is executed. A damaged newest checkpoint is
    said in a warning, and the one before it taken. The best one's state has `epoch` and `scores`
    beside it. Raises `RunError` when there is none that is whole.
    """
    path = Path(path)
    if which not in ("last", "best"):
        raise ConfigError(f"which={which!r} is unknown: write 'last' or 'best'")
    if (path / store.MANIFEST).exists():
        return store.read(path, map_location)
    names = store.names_in(path)
    if not names:
        raise RunError(f"no checkpoint in {path}: the run ended before it saved one")
    if which == "best":
        mark = _marked(path)
        if mark is None:
            raise RunError(f"no best checkpoint in {path}: the run ended before it had a score")
        state = store.read(path / mark["name"], map_location)
        return {**state, "epoch": mark["epoch"], "scores": mark["scores"]}
    return _newest_good(path, names, map_location)


def _newest_good(
    folder: Path, names: list[str], map_location: str | torch.device
) -> dict[str, Any]:
    problem: RunError | None = None
    for name in reversed(names):
        try:
            state = store.read(folder / name, map_location)
        except RunError as error:
            problem = problem or error
        else:
            if problem is not None:
                warnings.warn(f"{problem}; going back to {name}", RuntimeWarning, stacklevel=3)
            return state
    assert problem is not None
    raise problem


def has_checkpoint(folder: Path, which: str = "last") -> bool:
    """Whether there is something for `load_checkpoint(folder, which)` to load, whole or not."""
    return bool(store.names_in(folder)) and (which == "last" or (folder / BEST).is_file())


def parse_every(every: str | None) -> tuple[float, str]:
    """(amount, unit) with unit `update`, `epoch`, `minute`, or "" for None; else `ConfigError`."""
    if every is None:
        return 0, ""
    found = _EVERY.fullmatch(every.strip()) if isinstance(every, str) else None
    amount = float(found[1]) if found else 0.0
    if found is None or amount <= 0 or (found[2] != "minute" and amount % 1):
        raise ConfigError(
            f"every={every!r} is not understood: write '50 updates', '2 epochs' or '10 minutes'"
        )
    return amount, found[2]


def _marked(folder: Path) -> dict[str, Any] | None:
    """What `best.json` says; None if there is none. Raises `RunError` if it is damaged."""
    file = folder / BEST
    if not file.is_file():
        return None
    try:
        mark = json.loads(file.read_bytes())
        fits = {"name", "epoch", "scores"} <= set(mark) and (folder / mark["name"]).is_dir()
    except (ValueError, TypeError, OSError):
        fits = False
    if not fits:
        raise RunError(f"{file} is damaged: delete it, and go on from the last checkpoint")
    return mark  # type: ignore[no-any-return]


def _copied(value: Any, spare: Any) -> Any:
    """`value` with its tensors copied to the CPU, into those of `spare` where they fit.

    The memory of one copy is kept from save to save: a fresh one would cost more than the copying.
    """
    if isinstance(value, Tensor):
        fits = (
            isinstance(spare, Tensor)
            and (spare.shape, spare.dtype, spare.stride())
            == (value.shape, value.dtype, value.stride())
        )  # fmt: skip
        if not fits:
            return value.detach().to("cpu", copy=True)
        spare.copy_(value.detach())
        return spare
    if isinstance(value, dict):
        spares = spare if isinstance(spare, dict) else {}
        return {name: _copied(part, spares.get(name)) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        places = spare if isinstance(spare, (list, tuple)) else ()
        return type(value)(
            _copied(part, places[k] if k < len(places) else None) for k, part in enumerate(value)
        )
    return value
