"""How often the display prints, and the rate of the training that it shows."""

from __future__ import annotations

from trueloop.records import StepRecord


class LineThrottle:
    """Which evaluations get a permanent line: about ten by their share of the run, a best one after
    5 s of silence, any after 10 s; the first and the last always. In a run of at most `all_of`
    evaluations, by their pace so far, each has one."""

    def __init__(self, all_of: int) -> None:
        self._share: float | None = None
        self._at = 0.0
        self._all_of = all_of
        self._count = 0

    def due(self, share: float, best: bool, now: float) -> bool:
        self._count += 1
        silent = now - self._at
        due = (
            self._share is None
            or share >= 1
            or self._count <= share * self._all_of + 1e-9
            or int(10 * share + 1e-9) > int(10 * self._share + 1e-9)
            or (best and silent >= 5)
            or silent >= 10
        )
        if due:
            self._share, self._at = share, now
        return due


class SampleRate:
    """Samples per second of training, without the time of evaluations."""

    def __init__(self, now: float) -> None:
        self.samples = 0
        self.idle = 0.0
        self._since = now
        self._rate: float | None = None

    def rate(self, now: float) -> float | None:
        """The rate since the last call, smoothed; None until it can be known."""
        seconds = now - self._since - self.idle
        if seconds > 0 and self.samples:
            fresh = float(self.samples) / seconds
            self._rate = fresh if self._rate is None else 0.7 * self._rate + 0.3 * fresh
        self._since, self.samples, self.idle = now, 0, 0.0
        return self._rate


class SkippedUpdates:
    """Skipped updates: the first one is printed at once, later ones are counted and printed every 2
    s."""

    def __init__(self) -> None:
        self._count = 0
        self._at: float | None = None
        self._has_outliers = False

    def line_for(self, record: StepRecord, now: float) -> str | None:
        self._count += 1
        is_outlier = record.outlier is not None and bool(record.outlier.outlier)
        self._has_outliers |= is_outlier
        if self._at is not None and now - self._at < 2:
            return None
        self._at = now
        if self._count > 1:
            return self.rest()
        self._count = 0
        # record.update counts the updates that were applied; this one would have been the next.
        why = "norm was an outlier" if is_outlier else "was not finite"
        return f"update {record.update + 1:,} skipped: its gradient {why}"

    def rest(self) -> str | None:
        """A line about those not said yet, if any."""
        count, self._count = self._count, 0
        if not count:
            return None
        what = "1 more update" if count == 1 else f"{count:,} more updates"
        why = "the gradients were not finite" + (", or outliers" * self._has_outliers)
        return f"{what} skipped: {why}"
