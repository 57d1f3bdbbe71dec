"""A feature selector, a target encoder, or a scaler is fitted before the data is split.

## What it does

Finds `fit` or `fit_transform` on all samples before the split into training and validation or test
data. What looks at the targets is an error; a scaler, plain encoder or imputer is advice.

## Why it breaks training

What is fitted contains information about samples that should be unseen. With the targets in it the
score is far too high: the best 20 of 2,000 columns of noise, chosen before the split, predict coin
flips with 86% accuracy (`trueloop lab --only 20c`). Nothing raises; new data shows it. For a
`StandardScaler` no effect could be measured (`trueloop lab --only 20a`); reviewers ask for it all
the same, and with outliers or drifting time series it may matter.

## Wrong

```python
X = SelectKBest(f_classif, k=20).fit_transform(X, y)
X_train, X_test, y_train, y_test = train_test_split(X, y)
```

## Right

```python
X_train, X_test, y_train, y_test = train_test_split(X, y)
selector = SelectKBest(f_classif, k=20)
X_train = selector.fit_transform(X_train, y_train)
X_test = selector.transform(X_test)
```

## Sources

- scikit-learn, "Common pitfalls: data leakage during pre-processing":
  https://scikit-learn.org/stable/common_pitfalls.html#data-leakage-during-pre-processing
- S. Kaufman et al., "Leakage in Data Mining", ACM TKDD 6(4), 2012:
  https://doi.org/10.1145/2382577.2382579

## How it is detected

The result of `fit_transform` (or of `transform` after a `fit` on the same data) goes into
`train_test_split`, or is cut by adjacent slices (`X[:n]`, `X[n:]`); or the data of `fit` is split
this way and the parts are transformed. By hand: columns that were chosen with the targets
(`x[:, keep]`) and are split with them, or are taken from each part (`x[train][:, keep]`,
`x[np.ix_(train, keep)]`); means of the targets by group (`np.bincount`, `index_add_`,
`scatter_reduce`, a dictionary of `target[column == value].mean()`) that become inputs; data that
was shifted and divided by its own mean, deviation or range, and is split. Not reported: encoders of
labels, data that is already a part of a split, and fits whose result is not split.
"""

from __future__ import annotations

from typing import NamedTuple

from trueloop.doctor.model.events import Ended
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.known_values import OpaqueObject, Sequence, Unknown, Value
from trueloop.doctor.model.table_events import (
    Preprocessed,
    SamplesSplit,
    ScaledByHand,
    Sliced,
    SummedByGroup,
)
from trueloop.doctor.model.things import Tensor, Thing
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.splits import DataSplit, SplitRecord, bounds_of

_DEPTH = 8
_LOOKS_AT_TARGETS = (
    "sklearn.feature_selection",
    "sklearn.discriminant_analysis",
    "sklearn.cross_decomposition",
    "sklearn.neighbors",
    "category_encoders",
)
"""Modules of preprocessors that are fitted to the targets."""


class _Fit(NamedTuple):
    place: Location
    scaler: OpaqueObject
    data: Value
    outcomes: list[Value]
    """The output of the scaler for that data."""


class PreprocessingSeesValidation(Rule):
    code = "TL706"

    def __init__(self) -> None:
        super().__init__()
        self._fits: list[_Fit] = []
        self._split: dict[int, tuple[_Fit, Location]] = {}
        """Scaler -> its fit and the split of that data, if nothing was transformed since."""
        self._parts: set[int] = set()
        """Data that is a part of something."""
        self._cuts: dict[int, list[tuple[str, str]]] = {}
        self.splits = SplitRecord()
        self.scaled: list[ScaledByHand] = []
        self._grouped: list[SummedByGroup] = []

    def on_samples_split(self, event: SamplesSplit) -> None:
        self.splits.on_samples_split(event)
        if event.function == "sklearn.model_selection.train_test_split":
            for data in event.data:
                self._is_split(data, event.place)

    def on_preprocessed(self, event: Preprocessed) -> None:
        if event.method == "transform":
            self._transformed(event)
        elif event.data is not None and not _is_part(event.data):
            outcomes = [event.result] if event.method == "fit_transform" else []
            self._fits.append(_Fit(event.place, event.preprocessor, event.data, outcomes))

    def _transformed(self, event: Preprocessed) -> None:
        pending = self._split.get(id(event.preprocessor))
        if pending is not None:
            self._report(*pending)
        for fit in self._fits:
            if fit.scaler is event.preprocessor and event.data is fit.data:
                fit.outcomes.append(event.result)

    def on_sliced(self, event: Sliced) -> None:
        self.splits.on_sliced(event)
        bounds = bounds_of(event.index)
        if bounds is None:
            return
        cuts = self._cuts.setdefault(id(event.data), [])
        lower, upper = bounds
        meets = any(
            (lower and before[1] == lower and not before[0])
            or (upper and before[0] == upper and not lower)
            for before in cuts
        )
        cuts.append(bounds)
        if meets:
            self._is_split(event.data, event.place)

    def on_scaled_by_hand(self, event: ScaledByHand) -> None:
        if not _is_part(event.data):
            self.scaled.append(event)

    def on_summed_by_group(self, event: SummedByGroup) -> None:
        self._grouped.append(event)

    def on_ended(self, event: Ended) -> None:
        for split in self.splits.found:
            self._chosen_before(split)
            self._encoded_before(split)
            found = self.splits.origins(split.data, indices=False)
            origins = {id(each) for each in found}
            for scaled in self.scaled:
                if id(scaled.result) in origins and not self.splits.is_part(scaled.data):
                    self.report(
                        scaled.place,
                        "The mean, deviation or range of all samples is taken before the split: it"
                        " uses the validation and test samples. The effect is usually too small to"
                        " measure; reviewers ask for it all the same.",
                        severity="advice",
                        fix="Split first, and take the statistics of the training part only.",
                        related=[(split.place, "the split")],
                    )

    def _chosen_before(self, split: DataSplit) -> None:
        """ChosenColumns that were chosen with the targets of all samples, which are split alike."""
        origins = {id(each) for each in self.splits.origins(split.data)}
        alike = [each.data for each in self.splits.found if each.key == split.key]
        for columns in self.splits.columns:
            of_part = self.splits.is_of_part(columns, split.data)
            if id(columns.sliced.result) not in origins and not of_part:
                continue
            place = columns.sliced.place
            if of_part and columns.sliced.chosen_at.line:
                place = columns.sliced.chosen_at
            for target in alike:
                same = self.splits.conversions(target)
                looks = all(each is not columns.sliced.data for each in same) and any(
                    self.splits.derives(columns.chosen, each) for each in same
                )
                if looks and target is not split.data and target is not columns.sliced.data:
                    self.report(
                        place,
                        "These columns were chosen with all samples before the split: the choice"
                        " uses the targets of the validation and test samples, so their scores are"
                        " far too high.",
                        fix="Split first, choose the columns with the training part only, and take"
                        " the same ones from the other parts.",
                        related=[(split.place, "the split")],
                    )

    def _encoded_before(self, split: DataSplit) -> None:
        """Columns made of the means of the targets of all samples, which are split alike."""
        origins = {id(each) for each in self.splits.origins(split.data, indices=False)}
        alike = [each.data for each in self.splits.found if each.key == split.key]
        for grouped in self._grouped:
            known = [each for each in alike if each is not split.data]
            same = [each for target in known for each in self.splits.conversions(target)]
            targets = any(self.splits.derives(grouped.column, each) for each in same)
            if targets and id(grouped.result) in origins:
                self.report(
                    grouped.place,
                    "The targets of all samples are averaged by group before the split, and become"
                    " inputs: those of the validation and test samples are in it, so their scores"
                    " are far too high.",
                    fix="Split first, and take the means of the training part only.",
                    related=[(split.place, "the split")],
                )

    def _is_split(self, data: Value | None, place: Location) -> None:
        for fit in self._fits:
            if any(_derives(data, outcome) for outcome in fit.outcomes):
                self._report(fit, place)
            elif data is fit.data and not fit.outcomes:
                self._split.setdefault(id(fit.scaler), (fit, place))

    def _report(self, fit: _Fit, split: Location) -> None:
        module, _, kind = fit.scaler.kind.rpartition(".")
        looks = module in _LOOKS_AT_TARGETS or kind == "TargetEncoder"
        supervised = looks and kind != "VarianceThreshold"
        harm = (
            "it uses the targets of the validation and test samples, so their scores are far too"
            " high."
            if supervised
            else "it uses statistics of the validation and test samples. The effect is usually too"
            " small to measure; reviewers ask for it all the same."
        )
        self.report(
            fit.place,
            f"`{kind}` is fitted on all samples before the split: {harm}",
            severity=None if supervised else "advice",
            fix="Split first, fit on the training part only, and transform the other parts"
            " with it.",
            related=[(split, "the split")],
        )


def _is_part(value: Value, depth: int = _DEPTH) -> bool:
    """The data is itself what a split or a slice left."""
    if not isinstance(value, (Unknown, OpaqueObject)):
        return False
    if value.key.startswith("split<") or "train" in value.key:
        return True
    return depth > 0 and any(_is_part(part, depth - 1) for part in _made_of(value))


def _made_of(value: Value) -> tuple[Value, ...]:
    return value.of if isinstance(value, Unknown) else ()


def _derives(value: Value | None, source: Value, depth: int = _DEPTH) -> bool:
    """A value was computed from a different one, or contains it."""
    if value is source:
        return True
    if depth == 0 or value is None:
        return False
    parts = [*_made_of(value), *(value.values if isinstance(value, Sequence) else ())][:12]
    if isinstance(value, Tensor):
        parts += value.made_from
    if isinstance(value, (Unknown, OpaqueObject, Thing)):
        # A column of a table that was assigned: `frame[columns] = scaler.fit_transform(...)`.
        columns = [each for name, each in value.attributes.items() if name.startswith("[")]
        parts += [each for each in columns if value not in _made_of(each)]
    return any(_derives(part, source, depth - 1) for part in parts if part is not value)
