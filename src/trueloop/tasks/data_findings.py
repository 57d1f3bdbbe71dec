"""Findings about a run's data before it trains, and the checks that tables and images share.

Every check measures on what it is given and stays silent unless the figures are clear: data that
are merely small, skewed or repetitive are ordinary data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "advice"]

_RARE = 0.1
_FEWEST_SHARED = 5
_SHARE_SHARED = 0.02
_NAMED = 3
"""Samples that a line names."""


@dataclass(frozen=True, kw_only=True)
class DataFinding:
    """One thing about the data that makes a run's scores doubtful, or its inputs odd."""

    code: str
    """Of the doctor's rule, whose page `trueloop explain` prints: `TL710`."""
    severity: Severity
    subject: str
    """Its subject, in a few words: `column 'alive'`."""
    message: str
    """The measurement, in one or two sentences."""
    fix: str
    """The remedy, in one sentence."""


def rare_class(counts: dict[str, int]) -> list[DataFinding]:
    """A finding on classes without a training sample, given the training samples of each, and one
    on the smallest other class: where it has less than a tenth of an even share, or, of two
    classes, less than a tenth of all."""
    return [*_absent_classes(counts), *_smallest_class(counts)]


def _absent_classes(counts: Mapping[str, int]) -> list[DataFinding]:
    absent = [name for name, count in counts.items() if not count]
    if not absent:
        return []
    more = f" and {len(absent) - _NAMED} more" if len(absent) > _NAMED else ""
    listed = ", ".join(map(repr, absent[:_NAMED])) + more
    finding = DataFinding(
        code="TL716",
        severity="warning",
        subject=f"class {listed}",
        message=f"The class {listed} has held-out samples but no training sample: the model "
        "cannot learn it, and predicts each of them wrongly.",
        fix="Add training samples of it, or remove its samples.",
    )
    return [finding]


def _smallest_class(counts: Mapping[str, int]) -> list[DataFinding]:
    present = {name: count for name, count in counts.items() if count}
    if len(present) < 2:
        return []
    total = sum(present.values())
    rare = min(present, key=lambda name: present[name])
    usual = max(present, key=lambda name: present[name])
    even = 1.0 if len(present) == 2 else 1.0 / len(present)
    if present[rare] / total >= _RARE * even:
        return []
    finding = DataFinding(
        code="TL716",
        severity="advice",
        subject=f"class {rare!r}",
        message=f"The class {rare!r} has {present[rare]:,} of the {total:,} training samples "
        f"({present[rare] / total:.2%}); always predicting {usual!r} scores "
        f"{present[usual] / total:.1%}.",
        fix="Judge by val_f1 or val_auroc rather than by accuracy (--monitor val_f1), and gather "
        "more samples of the rare class.",
    )
    return [finding]


def skipped_samples(skipped: Mapping[str, str]) -> str:
    """A line about samples that could not be read, with the first few of them."""
    first = "; ".join(f"{name} ({why})" for name, why in list(skipped.items())[:_NAMED])
    more = f"; and {len(skipped) - _NAMED:,} more" if len(skipped) > _NAMED else ""
    noun = "sample that cannot" if len(skipped) == 1 else "samples that cannot"
    return f"skipped {len(skipped):,} {noun} be read: {first}{more}"


def is_much(shared: int, of: int) -> bool:
    """Whether so many shared samples `of` a part are more than a few twins that happen."""
    return shared >= _FEWEST_SHARED and shared >= _SHARE_SHARED * of


def shared_samples(
    shared: dict[str, int],
    sizes: dict[str, int],
    *,
    noun: str,
    severity: Severity,
    note: str = "",
) -> list[DataFinding]:
    """A finding on held-out samples that are duplicates of training samples.

    `shared` and `sizes` count them by part (`val`, `test`); `noun` is what they are called, in the
    plural.
    """
    parts = {"val": "validation", "test": "test"}
    counts = [
        f"{count:,} of the {sizes[part]:,} {parts[part]} {noun} ({count / sizes[part]:.1%})"
        for part, count in shared.items()
        if count
    ]
    if not counts:
        return []
    finding = DataFinding(
        code="TL705",
        severity=severity,
        subject=f"{' and '.join(parts[part] for part in shared if shared[part])} {noun}",
        message=f"{' and '.join(counts)} are exact duplicates of training {noun}." + note,
        fix="Where they are copies, keep one of each: the model has seen them, so the score is "
        "inflated.",
    )
    return [finding]
