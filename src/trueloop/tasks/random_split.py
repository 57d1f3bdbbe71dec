"""Which rows train, which choose the model and which judge it: a function of only the seed."""

from __future__ import annotations

import numpy as np

from trueloop.folds import FoldNumber, stratified_folds
from trueloop.seed import mix


def generator(seed: int, purpose: str) -> np.random.Generator:
    """A generator of the task's own; `purpose` keeps the draws of different uses apart."""
    return np.random.default_rng(mix(seed, int.from_bytes(purpose.encode())))


def random_split(
    count: int, shares: list[float], seed: int, fold: FoldNumber | None = None
) -> list[np.ndarray]:
    """`split` of `count` rows that have no classes."""
    return stratified_split(np.zeros(count, dtype=np.int64), shares, seed, fold)


def stratified_split(
    labels: np.ndarray, shares: list[float], seed: int, fold: FoldNumber | None = None
) -> list[np.ndarray]:
    """Indices of the rows left over, then of one part for each share, each in ascending order.

    Every part has each class in proportion, to within one row, and `round(share * rows)` rows in
    all; a class always leaves a row to the first part, which is the one to train on. `labels` is an
    integer array (rows,); the shares are in (0, 1) and their sum too.

    With a `fold`, the last part is that fold of the rows that the parts before it leave.
    """
    if fold is not None:
        rest, *parts = stratified_split(labels, shares[:-1], seed)
        validates = stratified_folds(labels[rest], fold.of, seed) == fold.number - 1
        return [rest[~validates], *parts, rest[validates]]
    rng = generator(seed, "split")
    remaining = np.arange(len(labels))
    parts = []
    for share in shares:
        wanted = round(share * len(labels))
        chosen = _proportional(labels[remaining], wanted, rng)
        parts.append(remaining[chosen])
        remaining = remaining[~chosen]
    return [remaining, *parts]


def _proportional(labels: np.ndarray, wanted: int, rng: np.random.Generator) -> np.ndarray:
    """A mask of `wanted` rows, each class in proportion (largest remainders, ties by lot)."""
    _, members, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    quota = wanted * sizes / max(1, len(labels))
    counts = np.minimum(np.floor(quota).astype(np.int64), sizes - 1)
    order = np.lexsort((rng.random(len(sizes)), counts - quota))
    for k in order[: wanted - counts.sum()]:
        counts[k] = min(counts[k] + 1, sizes[k] - 1)
    shuffled = rng.permutation(len(labels))
    by_class = shuffled[np.argsort(members[shuffled], kind="stable")]
    rank_in_class = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    chosen = np.zeros(len(labels), dtype=bool)
    chosen[by_class[rank_in_class < np.repeat(counts, sizes)]] = True
    return chosen
