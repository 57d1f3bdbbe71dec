"""Cross-validation: samples dealt into folds, a fresh training for each, mean and spread."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trueloop import _options, files, ranks, seed as seeds
from trueloop.atomic import write_atomic
from trueloop.errors import ConfigError, DataError, RunError

Ints = npt.NDArray[np.int64]

__all__ = ["CrossValidation", "Fold", "cross_validate", "group_folds", "stratified_folds"]

# Keeps the draws that deal samples into folds apart from all others of a seed.
_FOLDS = int.from_bytes(b"folds")
_MOST_KEPT = 100_000_000


class FoldNumber(NamedTuple):
    """Which fold of how many validates; from 1."""

    number: int
    of: int


@dataclass(frozen=True, kw_only=True)
class Fold:
    """One training of a cross-validation.

    Attributes:
        number: of the fold that validates, from 1.
        of: folds in all.
        repeat: from 1.
        seed: for the weights and the order, one for each repeat.
        train: indices of the samples to train on, int64, ascending.
        val: indices of the samples to validate on, int64, ascending.
    """

    number: int
    of: int
    repeat: int
    seed: int
    train: Ints
    val: Ints


@dataclass(frozen=True, kw_only=True)
class CrossValidation:
    """The scores of a cross-validation; printed, it is their mean ± their standard deviation.

    Attributes:
        scores: of each training, the folds of the first repeat first.
        folds: of a repeat.
        repeats: how often the samples were dealt into folds.
    """

    scores: Sequence[Mapping[str, float]]
    folds: int
    repeats: int

    @property
    def mean(self) -> dict[str, float]:
        """The mean of each score that every training has."""
        return {name: float(np.mean(values)) for name, values in self._columns()}

    @property
    def std(self) -> dict[str, float]:
        """The standard deviation of each score between the trainings (with n - 1)."""
        return {name: spread(values) for name, values in self._columns()}

    def _columns(self) -> Iterator[tuple[str, list[float]]]:
        for name in self.scores[0] if self.scores else ():
            if all(name in one for one in self.scores):
                yield name, [float(one[name]) for one in self.scores]

    def __str__(self) -> str:
        shown = [
            f"{name} {plus_minus(values)}"
            for name, values in self._columns()
            if not name.startswith("train_")
        ]
        return f"{', '.join(shown)} ({how_many(self.folds, self.repeats)})"


def spread(values: Sequence[float]) -> float:
    """The standard deviation with n - 1; NaN for fewer than two."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def plus_minus(values: Sequence[float]) -> str:
    """ "0.91 ± 0.02": the mean to the place of the standard deviation's first digit, or of its
    second if that is a 1."""
    mean, std = float(np.mean(values)), spread(values)
    if not math.isfinite(std) or std <= 0:
        return f"{mean:.4g}" + (" ± 0" if std == 0 else "")
    exponent = math.floor(math.log10(std))
    places = max(0, -exponent + (std / 10**exponent < 2))
    return f"{mean:,.{places}f} ± {std:,.{places}f}"


def how_many(folds: int | None, repeats: int) -> str:
    """ "5 folds", "3 repeats" or "5 folds, 3 repeats"."""
    parts = [f"{folds} folds"] if folds else []
    return ", ".join(parts + [f"{repeats} repeats"] * (repeats > 1 or not parts))


def stratified_folds(labels: npt.ArrayLike, folds: int, seed: int = 0) -> Ints:
    """Deal samples into folds, each class as evenly as can be.

    Each fold has each class to within one sample of any other, and as many samples in all, to
    within one.

    Args:
        labels: a class index for each sample, int (samples,); all equal for no classes.
        folds: how many.
        seed: of the lots.

    Returns:
        The fold of each sample, from 0, int64 (samples,).

    Raises:
        ConfigError: fewer than 2 folds.
        DataError: fewer samples than folds.
    """
    classes = np.unique(np.asarray(labels), return_inverse=True)[1].reshape(-1)
    _check(folds, len(classes), "samples")
    shuffled = _lots(seed).permutation(len(classes))
    by_class = shuffled[np.argsort(classes[shuffled], kind="stable")]
    found = np.empty(len(classes), dtype=np.int64)
    found[by_class] = np.arange(len(classes)) % folds
    return found


def group_folds(groups: npt.ArrayLike, folds: int, seed: int = 0) -> Ints:
    """Deal samples into folds, all samples of a group into one.

    The largest groups first, each into the fold with the fewest samples so far; ties by lot.

    Args:
        groups: what names the group of each sample, of any dtype, (samples,).
        folds: how many.
        seed: of the lots.

    Returns:
        The fold of each sample, from 0, int64 (samples,).

    Raises:
        ConfigError: fewer than 2 folds.
        DataError: fewer groups than folds.
    """
    _, members, sizes = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    _check(folds, len(sizes), "groups")
    lots = _lots(seed)
    order = np.lexsort((lots.permutation(len(sizes)), -sizes))
    names = lots.permutation(folds)
    filled, fold_of = np.zeros(folds, dtype=np.int64), np.empty(len(sizes), dtype=np.int64)
    for group in order:
        fold = int(filled.argmin())
        fold_of[group] = names[fold]
        filled[fold] += sizes[group]
    return fold_of[members.reshape(-1)]


def _lots(seed: int) -> np.random.Generator:
    return np.random.default_rng(seeds.mix(seeds.check_seed(seed), _FOLDS))


def _check(folds: int, there: int, what: str) -> None:
    _options.whole("folds", folds, 2, 5)
    if there < folds:
        raise DataError(
            f"{there} {what} cannot be dealt into {folds} folds: write folds={max(there, 2)} or "
            "less"
        )


def cross_validate(
    train: Callable[[Fold], Any],
    labels: npt.ArrayLike | int,
    *,
    folds: int = 5,
    repeats: int = 1,
    groups: npt.ArrayLike | None = None,
    seed: int = 0,
    keep: str | Path | None = None,
) -> CrossValidation:
    """Train once for each fold, validated on it, and sum the scores up.

    torch, numpy and `random` are seeded with the fold's seed before each call, and are afterwards
    as they were before. On several ranks each calls it, and trains each fold with the others; the
    scores are those of rank 0.

    Args:
        train: is called with a `Fold`, makes a new model, trains it on the samples `fold.train` and
            returns its scores on `fold.val`: what `fit` or `evaluate` returned, or a dict of
            numbers. Of `fit`, the scores are those of the best evaluation.
        labels: a class index for each sample, so that each fold has each class in proportion; or
            the number of samples.
        folds: how many.
        repeats: how often the samples are dealt into folds, with the seeds `seed`, `seed` + 1,
            ….
        groups: what names the group of each sample: each group is in one fold.
        seed: of the first repeat.
        keep: a JSON file of the scores of the folds that are finished: the same call after an
            interruption trains the others.

    Returns:
        The scores of each training, their mean and their standard deviation.

    Raises:
        ConfigError: an argument cannot be, or `train` returned no scores.
        DataError: fewer samples or groups than folds.
        RunError: `keep` is the file of a different cross-validation, or damaged.
    """
    _options.function("train", train, "fold", "cross_validate(lambda fold: {'accuracy': 0.9}, 100)")
    _options.whole("repeats", repeats, 1)
    rows = _classes(labels)
    found = list(_dealt(rows, groups, folds, repeats, seed))
    kept = None if keep is None else _Kept(_options.path("keep", keep), found, len(rows))
    scores = [] if kept is None else ranks.on_main(kept.read, "the scores that are kept")
    for fold in found[len(scores) :]:
        with seeds.rng_preserved():
            seeds.seed_generators(fold.seed)
            mine = _scores_of(train(fold))
        scores.append(ranks.on_main(partial(_kept, kept, scores, mine), "the scores of a fold"))
    return CrossValidation(scores=scores, folds=folds, repeats=repeats)


def _kept(
    kept: _Kept | None, before: Sequence[Mapping[str, float]], scores: dict[str, float]
) -> dict[str, float]:
    """`scores`, once they are kept beside those before."""
    if kept is not None:
        kept.write([*before, scores])
    return scores


def _classes(labels: npt.ArrayLike | int) -> npt.NDArray[Any]:
    if _options.is_integer(labels):
        return np.zeros(_options.whole("labels", labels, 2, 100), dtype=np.int64)
    rows = np.asarray(labels)
    if rows.ndim != 1 or rows.dtype.kind not in "iubUSO":
        raise ConfigError(
            f"labels is an array of {rows.dtype} of shape {rows.shape}, not one class for each "
            "sample: write the number of samples, labels=len(targets), for folds without classes"
        )
    return rows


def _dealt(
    labels: npt.NDArray[Any], groups: npt.ArrayLike | None, folds: int, repeats: int, seed: int
) -> Iterator[Fold]:
    if groups is not None and np.shape(groups) != labels.shape:
        raise ConfigError(
            f"groups has the shape {np.shape(groups)} and there are {len(labels)} samples: give "
            "one for each"
        )
    for repeat in range(repeats):
        own = seed + repeat
        fold_of = (
            stratified_folds(labels, folds, own)
            if groups is None
            else group_folds(groups, folds, own)
        )
        for number in range(folds):
            yield Fold(
                number=number + 1,
                of=folds,
                repeat=repeat + 1,
                seed=own,
                train=np.flatnonzero(fold_of != number),
                val=np.flatnonzero(fold_of == number),
            )


def _scores_of(result: Any) -> dict[str, float]:
    """The scores in what a training returned: a `History`, an `EvalRecord`, or a mapping."""
    found = result
    if (records := getattr(result, "records", None)) is not None:  # a History
        best = [r for r in records if r.update == result.best_update] or records[-1:]
        found = best[0] if best else None
    found = getattr(found, "scores", found)
    try:
        scores = {str(name): float(value) for name, value in found.items()}
    except (AttributeError, TypeError, ValueError):
        scores = {}
    if not scores:
        raise ConfigError(
            f"train(fold) returned {_options.kind_of(result)} without scores: let it return what "
            "fit or evaluate returned, or a dict such as {'accuracy': 0.9}"
        )
    return scores


class _Kept:
    """The scores of the folds that are finished, in a file."""

    def __init__(self, path: Path, folds: list[Fold], samples: int) -> None:
        digest = hashlib.sha256()
        for fold in folds:
            digest.update(fold.val.astype("<i8").tobytes() + b"|")
        self._path = path
        self._head = {"samples": samples, "trainings": len(folds), "folds": digest.hexdigest()}

    def read(self) -> list[Mapping[str, float]]:
        """Those of the folds that are finished; `RunError` for a file of anything else."""
        path = self._path
        if not path.exists():
            return []
        try:
            content = json.loads(files.read_text(path, _MOST_KEPT))
            head = {name: content[name] for name in self._head}
            scores: list[Mapping[str, float]] = [_scores_of(one) for one in content["scores"]]
        except (OSError, ValueError, KeyError, TypeError, ConfigError) as error:
            raise RunError(
                f"{path} has no scores of a cross-validation ({type(error).__name__}): delete it, "
                "or choose a different keep"
            ) from None
        if head != self._head:
            raise RunError(
                f"{path} is of a different cross-validation (its samples, folds, repeats or seed): "
                "choose a different keep, or delete it"
            )
        return scores

    def write(self, scores: Sequence[Mapping[str, float]]) -> None:
        """Write those of the folds that are finished."""
        content = {**self._head, "scores": [dict(one) for one in scores]}
        write_atomic(self._path, json.dumps(content, indent=1).encode())
