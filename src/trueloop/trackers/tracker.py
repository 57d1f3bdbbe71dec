"""The base of all trackers: points of the curves, read in bulk, each stored once."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from trueloop import _options, ranks
from trueloop.errors import ConfigError, MissingDependencyError, RunError, TrueloopError
from trueloop.records import EvalRecord, StepRecord
from trueloop.run.record_buffer import RecordBuffer

_FLUSH_SECONDS = 2.0
STATE = "run.json"
"""In the tracker's folder: which run it continues, and how far its curves go."""


@dataclass(frozen=True)
class Point:
    """One update, or one evaluation, with its values.

    Attributes:
        update: the axis of all curves: updates applied.
        axes: `epoch` (from 1), `samples` and `tokens` trained on so far, `seconds` of training;
            `tokens` only where batches have some.
        values: the names of the log's lines: `loss`, `grad_norm`, `lr`, `val_loss`, …
        is_eval: whether it is an evaluation.
        at: seconds since 1970.
    """

    update: int
    axes: dict[str, float]
    values: dict[str, float]
    is_eval: bool
    at: float


class Tracker:
    """A sink for `StepRecord` and `EvalRecord` that stores them as curves over updates.

    Losses are read many at once: when 256 records have gathered, after two seconds, and at an
    evaluation. Of many ranks only the main one stores anything. When a point cannot be stored (a
    full disk, a server that is gone), the tracker warns once and the training continues without
    it.
    """

    package: ClassVar[str] = ""
    """The package that it imports; empty if there is none."""
    extra: ClassVar[str] = ""
    """The extra of trueloop with that package."""

    def __init__(
        self, folder: Path | str, *, every_updates: int = 1, by_line: bool = False
    ) -> None:
        self.require()
        self.folder = _options.path("folder", folder)
        self.every_updates = _options.whole("every_updates", every_updates, 1, 10)
        self.by_line = _options.flag("by_line", by_line)
        self._buffer = RecordBuffer(_FLUSH_SECONDS)
        self._is_on = ranks.is_main()
        self._has_begun = False
        self._state: dict[str, Any] = {}
        self._samples = self._tokens = 0
        self._began = time.perf_counter()

    @classmethod
    def require(cls) -> None:
        """Check that its library is installed.

        Raises:
            MissingDependencyError: it is not.
        """
        if cls.package and find_spec(cls.package) is None:
            raise MissingDependencyError(
                f"the tracker {cls.extra} needs the package {cls.package}, which is not installed: "
                f"type pip install 'trueloop[{cls.extra}]'"
            )

    def begin(
        self, *, updates: int = 0, samples: int = 0, tokens: int = 0, seconds: float = 0.0
    ) -> None:
        """Open the store; `fit` calls this before the first batch.

        Args:
            updates: updates applied so far. 0 begins new curves; more continues those in the
                folder: what it has beyond is dropped, or not stored again where it cannot be.
            samples: samples in these updates.
            tokens: tokens in them.
            seconds: how long they took.

        Raises:
            RunError: new curves are to begin in a folder that has some.
            ConfigError: the library cannot start: no network, not logged in.
        """
        self._has_begun = True
        self._samples, self._tokens = samples, tokens
        self._began = time.perf_counter() - seconds
        if not self._is_on:
            return
        if not updates and self.folder.is_dir() and any(self.folder.iterdir()):
            raise RunError(
                f"{self.folder} has the curves of a run already: choose a different folder, or "
                "continue that run with fit(resume_from=...)"
            )
        self._state = _read_state(self.folder / STATE)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._open(updates)
            self._write_state()
        except TrueloopError:
            raise
        except Exception as error:
            self._is_on = False
            raise ConfigError(
                f"{type(self).__name__} cannot start ({_in_a_line(error)}): {self._remedy()}"
            ) from None

    def __call__(self, record: StepRecord | EvalRecord) -> None:
        """Keep a record, to be stored soon.

        Args:
            record: what `fit` hands to its sinks.
        """
        if isinstance(record, EvalRecord):
            if record.update is not None:
                self._begin_late(record.update)
                self._store([*self._drain(), self._evaluation(record)])
        elif record.updated and not self.by_line:
            self._begin_late(record.update - 1)
            self._keep(record, 1, int((record.update - 1) % self.every_updates == 0))

    def line(self, record: StepRecord, updates: int) -> None:
        """Keep a line of `fit(log_every=…)`, if the tracker was made with `by_line=True`.

        Args:
            record: with the means over its updates.
            updates: how many they are.
        """
        if self.by_line:
            self._begin_late(record.update - updates)
            self._keep(record, updates, updates)

    def flush(self) -> None:
        """Store what waits."""
        self._store(self._drain())

    def add_scores(self, scores: Mapping[str, float], *, epoch: int, update: int) -> None:
        """Store scores of the whole run, such as those of its test data, beside the evaluations.

        Args:
            scores: by name.
            epoch: the last one, from 0.
            update: the last one: the curves end there.
        """
        self.flush()
        record = EvalRecord(dict(scores), 0, epoch, update)
        if self._is_on and self._has_begun:
            self._guarded(lambda: self._write([self._evaluation(record)]))

    def close(self, status: str = "finished") -> None:
        """Store what waits, and close the store. Closing twice is fine.

        Args:
            status: how the run ended, as `History.status` has it, or "failed".
        """
        if not self._has_begun:
            return
        self.flush()
        if self._is_on:
            self._guarded(lambda: self._end(status))
        self._is_on = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            is_stop = isinstance(error, KeyboardInterrupt)
            self.close("interrupted" if is_stop else "failed")

    # What each tracker has of its own.

    def _open(self, updates: int) -> None:
        """Open the store for the points after `updates`."""
        raise NotImplementedError

    def _write(self, points: Sequence[Point]) -> None:
        raise NotImplementedError

    def _end(self, status: str) -> None:
        """Close the store."""

    def _remedy(self) -> str:
        return "check the folder"

    # What they share.

    def _begin_late(self, updates: int) -> None:
        """Without `fit`, the first record shows how far the run is."""
        if not self._has_begun:
            self.begin(updates=updates)

    def _keep(self, record: StepRecord, updates: int, stored: int) -> None:
        if not self._is_on:
            return
        self._samples += int(record.samples)
        self._tokens += int(record.tokens)
        # The counts so far stand in for the record's own, which nobody asks for.
        whole = record._replace(samples=self._samples, tokens=self._tokens)
        if stored and self._buffer.add(whole, updates):
            self.flush()

    def _drain(self) -> list[Point]:
        return [
            Point(
                update=one.record.update,
                axes=self._axes(one.record.epoch, one.record.samples, one.record.tokens, one.at),
                values={
                    "loss": one.loss,
                    **({} if one.grad_norm is None else {"grad_norm": one.grad_norm}),
                    "lr": one.record.lr,
                    **{f"lr/{n}": lr for n, lr in one.record.lrs.items() if lr != one.record.lr},
                    **one.parts,
                },
                is_eval=False,
                at=time.time() - (time.perf_counter() - one.at),
            )
            for one in self._buffer.read()
        ]

    def _evaluation(self, record: EvalRecord) -> Point:
        now = time.perf_counter()
        axes = self._axes(record.epoch or 0, self._samples, self._tokens, now)
        return Point(record.update or 0, axes, dict(record.scores), True, time.time())

    def _axes(self, epoch: int, samples: int, tokens: int, at: float) -> dict[str, float]:
        counts: dict[str, float] = {"epoch": epoch + 1, "samples": samples}
        if tokens:
            counts["tokens"] = tokens
        return {**counts, "seconds": round(at - self._began, 3)}

    def _store(self, points: list[Point]) -> None:
        """Write the points that are not stored yet, and remember how far the curves go."""
        if not self._is_on:
            return
        last = {False: self._state.get("update", 0), True: self._state.get("evaluation", -1)}
        fresh = [point for point in points if point.update > last[point.is_eval]]
        if not fresh:
            return

        def write() -> None:
            self._write(fresh)
            for point in fresh:
                self._state["evaluation" if point.is_eval else "update"] = point.update
            self._write_state()

        self._guarded(write)

    def _guarded(self, act: Any) -> None:
        try:
            act()
        except Exception as error:
            self._is_on = False
            warnings.warn(
                f"{type(self).__name__} cannot store the curves any more ({_in_a_line(error)}): "
                "the training continues without it",
                RuntimeWarning,
                stacklevel=4,
            )

    def _write_state(self) -> None:
        path = self.folder / STATE
        fresh = path.with_suffix(".tmp")
        fresh.write_text(json.dumps(self._state), encoding="utf-8")
        fresh.replace(path)


class ServiceTracker(Tracker):
    """A tracker whose runs have a name and show the options beside the curves."""

    def __init__(
        self,
        folder: Path | str,
        *,
        name: str | None = None,
        config: Mapping[str, Any] | None = None,
        every_updates: int = 1,
        by_line: bool = False,
    ) -> None:
        super().__init__(folder, every_updates=every_updates, by_line=by_line)
        self.name = name or self.folder.resolve().name
        self.config = dict(config or {})


def _read_state(path: Path) -> dict[str, Any]:
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def _in_a_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text[:200] or type(error).__name__
