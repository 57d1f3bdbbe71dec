"""The checkpoints of a run: written beside the training, the last few and the best one kept."""

from __future__ import annotations

import functools
import shutil
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from trueloop import _options, ranks
from trueloop.atomic import WriteError
from trueloop.checkpoint import best as bests, store
from trueloop.checkpoint.group_write import GroupWriter, LostRankError
from trueloop.checkpoint.load import has_checkpoint, load_checkpoint
from trueloop.checkpoint.lock import FolderClaim
from trueloop.checkpoint.named_state import capture_named, check_named
from trueloop.checkpoint.staging import StagingBuffer
from trueloop.checkpoint.state import Place, capture, place_of, restore
from trueloop.checkpoint.tensor_shards import divided
from trueloop.errors import ConfigError, RunError
from trueloop.feed import Feed
from trueloop.lengths import parse_interval
from trueloop.records import EvalRecord, is_better, loss_beside, monitored
from trueloop.step import Step
from trueloop.step.schedule import resolve_mode

State = dict[str, Any]

# Writing the state after every epoch of a few milliseconds would cost more than the epochs.
_SECONDS = 5.0
_ON_MAIN = "rank 0's work on the checkpoints' folder"
_WRITING = "the writing of a checkpoint by all ranks"


class Checkpoints:
    """Keeps the last checkpoints of a run in a folder, and the best by a score.

    While a run writes into the folder, it is locked against other processes and other fits. An
    older checkpoint is deleted only when a newer one is on disk and verified.

    Under several ranks every rank makes one, with the same options and a folder that all hosts
    share, and calls its methods at the same places. Each rank writes its part of the state, and
    rank 0 makes it a checkpoint when all have: what one rank cannot write is missing on all.
    `state` is saved of each rank, where it is not the same as on rank 0; on a different number of
    ranks, all resume with rank 0's.

    Args:
        folder: where to write; created if it is missing.
        keep_last: how many of the newest are kept.
        keep_best: the score by which the best is kept beside them; None keeps none.
        every: how often the state is written beside the best and the last one: "50 updates", "2
            epochs", "10 minutes", within `fit` also "100_000 samples" or "1_000_000 tokens"; None
            is after an evaluation and at the end of an epoch, if five seconds have passed.
        asynchronous: the state is copied, and a thread writes it in the background. At most one
            write runs at a time; the next save, and the end of the run, wait for it.
        on_error: what to do when a checkpoint cannot be written (a full disk): `stop` raises
            `RunError` as soon as that is known, at the end at the latest; `continue` warns once and
            trains on, and warns again when checkpoints are written again or the run has ended
            without. The checkpoints before it are intact either way.
        state: what else the run depends on, by name: an EMA, a replay buffer, a counter. Objects
            with `state_dict` and `load_state_dict`, and what can be changed in place: dicts, lists,
            deques, tensors, generators. They are saved with the rest, and a resume restores them.

    Raises:
        ConfigError: an option that cannot work.
        RunError: `folder` is a file.
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
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.folder = _options.path("folder", folder)
        if self.folder.is_file():
            raise RunError(f"{folder} is a file: name a folder for the checkpoints")
        self.keep_last = _options.whole("keep_last", keep_last, 1, 3)
        self.keep_best = keep_best
        if keep_best is not None:
            _options.text("keep_best", keep_best, "val_loss")
        self.asynchronous = _options.flag("asynchronous", asynchronous)
        self.on_error = _options.choice("on_error", on_error, ("stop", "continue"))
        self.every = parse_interval("every", every)
        """How often the state is written; None for the ends of epochs."""
        self.state = check_named({} if state is None else state)
        """The objects that are saved and restored with the rest, by name."""
        self._claim = FolderClaim(self.folder)
        self.unsaved: str | None = None
        """Why the latest state is not on the disk; None if it is, or while it is being written."""
        self._missed = 0
        self._updates = 0
        self._spare = StagingBuffer()
        self._group: GroupWriter | None = None
        self._attention = ranks.Agreement()
        self._is_time = False
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._saved_at = time.monotonic()

    def is_due(self, *, updates: int, epochs: int | None = None) -> bool:
        """Whether it is time to save.

        Args:
            updates: updates applied so far.
            epochs: epochs ended, at the end of one; None after an update.

        Returns:
            The same on all ranks.
        """
        unit, amount = ("", 0) if self.every is None else (self.every.unit, self.every.amount)
        if unit == "minutes":
            if ranks.is_distributed() and epochs is None:
                return self._is_time
            return self._is_past(60 * amount)
        if unit == "updates":
            return epochs is None and updates % amount == 0
        if epochs is None:
            return False
        if unit == "epochs":
            return epochs % amount == 0
        return self._is_past(_SECONDS)

    def _is_past(self, seconds: float) -> bool:
        """Whether the last save is so long ago, by the clock of rank 0."""
        return ranks.on_main(lambda: time.monotonic() - self._saved_at >= seconds, _ON_MAIN)

    def begin(self, resumed: tuple[int, int, int] | None) -> bool:
        """Prepare the folder for a run.

        Checkpoints after the place from which a run resumes are damaged or a future that was given
        up, and are removed.

        Args:
            resumed: (epoch, batch, update) from which the run resumes; None for a new run.

        Returns:
            Whether that place is already saved in this folder.

        Raises:
            RunError: a new run in a folder with checkpoints of a different run.
        """
        return ranks.on_main(lambda: self._begin_folder(resumed), _ON_MAIN)

    def _begin_folder(self, resumed: tuple[int, int, int] | None) -> bool:
        self._claim.acquire()
        names = store.names_in(self.folder)
        if resumed is None and names:
            raise RunError(
                f"{self.folder} contains the checkpoints of a different run: resume it "
                "(resume_from=load_checkpoint(folder)), or choose a different folder"
            )
        if names:
            store.remove_litter(self.folder)
            here = store.name_of(*resumed) if resumed is not None else ""
            later = names[names.index(here) + 1 :] if here in names else []
            for name in later:
                shutil.rmtree(self.folder / name, ignore_errors=True)
            bests.remark(self.folder)
            return here in names
        return False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Return a context in which nothing else, in this process either, writes to the folder."""
        with ExitStack() as held:
            ranks.on_main(lambda: held.enter_context(self._claim.held()), _ON_MAIN)
            yield

    def keep(self, step: Step, feed: Feed, scores: EvalRecord | None = None) -> None:
        """For a loop of your own: save if it is time to.

        Call it after each `step(batch)`, and with the epoch's scores after `step.end_epoch`.

        Args:
            step: the step that trains.
            feed: the feed that it trains on.
            scores: what `evaluate` returned, at an epoch's end; the best epoch by `keep_best` (with
                or without its `val_`) is saved and marked as such.

        Raises:
            ConfigError: it is not a step, a feed or an `EvalRecord`; or only `fit` counts `every`.
            RunError: a checkpoint cannot be written, and `on_error` is `stop`.
        """
        _check_step_and_feed(step, feed)
        if self.every is not None and self.every.unit in ("samples", "tokens"):
            raise ConfigError(
                f"every='{self.every}' only works in fit, not in your own loop: write "
                "every='500 updates'"
            )
        if scores is not None and not isinstance(scores, EvalRecord):
            raise ConfigError(
                f"the scores are {_options.kind_of(scores)}: give what evaluate() returned"
            )
        self.poll(minutes=True)
        best = None if scores is None else self._better(step, scores)
        epochs = None if scores is None else step.epoch
        # A batch that only adds to a window is no update.
        news = epochs is not None or step.updates != self._updates
        self._updates = step.updates
        if best is not None or (news and self.is_due(updates=step.updates, epochs=epochs)):
            self.save(capture(step, feed), place_of(step), best)
        elif step.updates:  # before the first one, the optimizer has no state
            self.prepare(lambda: capture(step, feed))

    def resume(self, step: Step, feed: Feed) -> bool:
        """For a loop of your own: load the newest good checkpoint, if there is one.

        Then `for epoch in range(step.epoch, epochs)`, and in it `feed.epoch(epoch,
        start=step.batch)`, are the rest of the run.

        Args:
            step: the step that will train, with the same options as the one that was saved.
            feed: the feed that it will train on.

        Returns:
            Whether there was one.

        Raises:
            ConfigError: it is not a step and a feed.
            RunError: no checkpoint is whole, or it does not fit the step or the feed.
        """
        _check_step_and_feed(step, feed)
        ranks.on_main(self._claim.acquire, _ON_MAIN)
        found = ranks.on_main(lambda: has_checkpoint(self.folder), _ON_MAIN)
        if found:
            restore(load_checkpoint(self.folder), step, feed, self.state)
        self.begin(place_of(step) if found else None)
        self._updates = step.updates
        return found

    def _better(self, step: Step, scores: EvalRecord) -> dict[str, Any] | None:
        """The mark of this epoch as the best so far; None if it is not."""
        if self.keep_best is None:
            return None
        bare = self.keep_best.removeprefix("val_")
        name = bare if bare in scores.scores else self.keep_best
        value = monitored(scores.scores, name)
        self._settle()
        mark = ranks.on_main(lambda: bests.marked(self.folder), _ON_MAIN)
        before = (mark or {"scores": {}})["scores"]
        losses = {
            "loss": loss_beside(scores.scores, name),
            "best_loss": loss_beside(before, name),
        }
        mode = resolve_mode(self.keep_best, "auto")
        if not is_better(value, before.get(name), mode, **losses):
            return None
        return {"epoch": step.epoch - 1, "update": step.updates, "scores": scores.scores}

    def save(
        self, state: dict[str, Any], place: tuple[int, int, int], best: dict[str, Any] | None = None
    ) -> None:
        """Write a state; return when it is copied (`wait` returns when it is on disk).

        Args:
            state: plain data and tensors, nested in dicts and lists.
            place: of its next batch: (epoch, batch, updates before it).
            best: marks it as the best so far: plain data, `epoch`, `update` and `scores`.

        Raises:
            RunError: a checkpoint cannot be written, and `on_error` is `stop`.
        """
        before = ranks.here.phase
        ranks.here.move("saving")
        try:
            self._settle()
            self._saved_at, self._is_time = time.monotonic(), False
            if self.state:
                state = {**state, "named": capture_named(self.state)}
            write = self._write_together if ranks.is_distributed() else self._write_alone
            write(state, place, best)
        finally:
            ranks.here.move(before)

    def _write_alone(self, state: State, place: Place, best: dict[str, Any] | None) -> None:
        self._claim.acquire()
        write = functools.partial(self._write, place=place, best=best)
        if self.asynchronous:
            copied = self._spare.copy(state)
            self._begin_thread(lambda: write(copied))
        else:
            write(state)
            self._finish_write()

    def _write_together(self, state: State, place: Place, best: dict[str, Any] | None) -> None:
        parts = divided(state, ranks.rank(), ranks.world_size())
        if self._group is None:
            self._group = GroupWriter()
        path, facts = self.folder / store.name_of(*place), _facts(place, best)

        def write() -> None:
            assert self._group is not None
            self._failure = None
            try:
                self._group.write(
                    path, parts, facts, begin=self._claim.acquire, end=lambda: self._end(path, best)
                )
            except BaseException as error:
                self._failure = error

        if self.asynchronous:
            parts = parts.copied(self._spare.copy(parts.tensors()))
            self._begin_thread(write)
        else:
            with ranks.waiting(_WRITING):
                write()
            self._finish_write()

    def _begin_thread(self, write: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=write, name="checkpoint")
        self._thread.start()

    def prepare(self, state: Callable[[], dict[str, Any]]) -> None:
        """Get the memory for a copy of the state, in the background, ahead of the first save.

        Args:
            state: returns what would be saved; called once.
        """
        if not self.asynchronous or self._spare.is_prepared:
            return
        found = {**state(), **({"named": capture_named(self.state)} if self.state else {})}
        if ranks.is_distributed():
            found = divided(found, ranks.rank(), ranks.world_size()).tensors()
        self._spare.prepare(found)

    def mark_best(self, place: tuple[int, int, int], best: dict[str, Any]) -> None:
        """Mark a checkpoint that is already saved as the best so far.

        Args:
            place: (epoch, batch, update), as it was saved.
            best: plain data: `epoch`, `update` and `scores`.
        """
        self._settle()
        try:
            ranks.on_main(lambda: self._mark(store.name_of(*place), best), _ON_MAIN)
        except WriteError as error:
            self.record_failure(error)

    def _mark(self, name: str, best: dict[str, Any]) -> None:
        # It is not there where it could not be written, and the run goes on without.
        if (self.folder / name).is_dir():
            bests.mark(self.folder, name, best)
            store.note(self.folder / name, best=store.in_file(best))

    def wait(self) -> None:
        """End a run: return when no write is under way.

        Raises:
            RunError: the last one failed, and `on_error` is `stop`.
        """
        try:
            self._settle()
            if self._missed > 1:
                self._warn(f"{self._missed} checkpoints, up to the last, could not be written")
        finally:
            self._claim.release()

    def poll(self, *, minutes: bool = False) -> None:
        """Raise (or warn) if a write has failed by now, without waiting for one.

        Several ranks learn of it a little later, all of them at the same call.

        Args:
            minutes: also find out whether an interval in minutes is over on rank 0.

        Raises:
            RunError: a checkpoint could not be written, and `on_error` is `stop`.
        """
        is_done = self._thread is not None and not self._thread.is_alive()
        if not ranks.is_distributed():
            if is_done:
                self._settle()
            return
        is_time = False
        if minutes and self.every is not None and self.every.unit == "minutes" and ranks.is_main():
            is_time = time.monotonic() - self._saved_at >= 60 * self.every.amount
        if self._attention.ask((is_done and self._failure is not None) or is_time):
            said = ranks.gathered((self._failure is not None, is_time), _ON_MAIN)
            self._is_time = any(time for _, time in said)
            if any(failed for failed, _ in said):
                self._settle()

    def record_failure(self, error: RunError) -> None:
        """Count a state as lost, because something that belongs to it cannot be written.

        It is as if its own writing had failed. Several ranks call it together.

        Args:
            error: why.

        Raises:
            RunError: `error`, if `on_error` is `stop`.
        """
        self._settle()
        self._failure = error
        self._finish_write()

    def _settle(self) -> None:
        """Wait for the write under way, and judge it."""
        if self._thread is not None:
            self.join()
            self._finish_write()

    def join(self) -> None:
        """Return when no write is under way, however the last one went."""
        if self._thread is not None:
            with ranks.waiting(_WRITING) if ranks.is_distributed() else nullcontext():
                self._thread.join()
            self._thread = None

    def _write(self, state: State, place: Place, best: dict[str, Any] | None) -> None:
        self._failure = None
        path = self.folder / store.name_of(*place)
        try:
            store.write(path, state, _facts(place, best))
            store.verify(path)
            self._end(path, best)
        except BaseException as error:
            self._failure = error

    def _end(self, path: Path, best: dict[str, Any] | None) -> None:
        """The work to do once a checkpoint is on the disk and verified."""
        if best is not None:
            bests.mark(self.folder, path.name, best)
        self._delete_older(path.name)

    def _delete_older(self, newest: str) -> None:
        names = store.names_in(self.folder)
        kept = {*names[-self.keep_last :], newest, (bests.marked(self.folder) or {}).get("name")}
        for name in names:
            if name not in kept:
                shutil.rmtree(self.folder / name, ignore_errors=True)

    def _finish_write(self) -> None:
        """Act on the outcome of a write: raise its error, or report and count it."""
        failure, self._failure = self._failure, None
        if failure is None:
            if self._missed:
                self._warn(f"checkpoints can be written again; {self._missed} were lost")
            self.unsaved, self._missed = None, 0
            return
        is_lost = isinstance(failure, LostRankError) or not isinstance(failure, RunError)
        if self.on_error == "stop" or is_lost:
            raise failure
        self.unsaved, self._missed = str(failure), self._missed + 1
        if self._missed == 1:
            self._warn(f"{failure}; the run continues without this checkpoint")

    def _warn(self, what: str) -> None:
        if not ranks.is_main():
            return
        names = store.names_in(self.folder)
        last = f"the last one is {names[-1]}" if names else "there is none"
        warnings.warn(f"{what}; {last}", RuntimeWarning, stacklevel=4)


def _facts(place: Place, best: dict[str, Any] | None) -> dict[str, Any]:
    """The manifest's entries about a checkpoint, beside its files."""
    epoch, batch, update = place
    return {
        "epoch": epoch,
        "batch": batch,
        "update": update,
        "time": round(time.time()),
        "best": None if best is None else store.in_file(best),
    }


def _check_step_and_feed(step: Any, feed: Any) -> None:
    if not isinstance(step, Step) or not isinstance(feed, Feed):
        raise ConfigError(
            f"a checkpoint is saved from a Step and a Feed, not from {_options.kind_of(step)} and "
            f"{_options.kind_of(feed)}: write checkpoints.keep(step, feed), with the Feed that you "
            "train on"
        )
