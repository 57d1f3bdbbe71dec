"""An input column contains the target.

## What it does

Finds a table with several input columns, one of which equals the target in every sample, or is a
different encoding of it.

## Why it breaks training

The model learns to copy that column and nothing else. Training and validation are nearly perfect at
once, and worthless: when the model is used, the column is not known yet. It is the target itself,
an encoding of it (`alive` beside `survived`), or a value that is recorded only after the outcome.

## Wrong

```python
inputs = torch.tensor(frame.values)           # with the column `survived`
targets = torch.tensor(frame["survived"].values)
```

## Right

```python
inputs = torch.tensor(frame.drop(columns=["survived", "alive"]).values)
```

## Sources

- S. Kaufman, S. Rosset, C. Perlich, [Leakage in Data Mining: Formulation, Detection, and
  Avoidance](https://doi.org/10.1145/2382577.2382579)

## How it is detected

In a running program: in all of at least 100 observed samples, a column of the two-dimensional
inputs equals the target, or has one value per class and one class per value. The inputs come from a
loader, or are what the program gives the model itself; then 100 different rows are needed. With two
classes and 200 samples, 20 of each, also a column with one value in all samples of a class, which
none of the other class has, while that one has at least 10 values (`days_until_closed`, 0 for all
who stayed). Not reported: a target that the program cuts out of the inputs (`x[:, :1]`), a single
column, targets of several columns (autoencoders), tokens, and a column from which only the target
follows (by a threshold, or as a part of it).

In the data, at the start of `trueloop train table`: one half of up to 20,000 training rows is
predicted from the other, both ways, from one column only, by the nearest value (numbers) or the
same one (categories). A finding is a column that predicts 99% of the rows, and nine in ten of those
that the most frequent class gets wrong; for numbers, R² 0.9995 and a median error of 1/50 of the
target's interquartile range. A column of many values that is right in less than 99.9% is advice: it
may be a good measurement.
"""

from __future__ import annotations

from trueloop.doctor.model.measurements import TargetColumns
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called


class TargetLeaks(Rule):
    code = "TL710"

    def on_target_columns(self, event: TargetColumns) -> None:
        columns, width = event.columns, event.width
        if not columns or len(columns) == width:
            return
        one = len(columns) == 1
        listed = ", ".join(str(each) for each in columns)
        loader = event.loader
        whose = (
            called(event.model, "the model") if loader is None else called(loader, "this loader")
        )
        self.report(
            event.place if loader is None else loader.made,
            f"{'Column' if one else 'Columns'} {listed} of the {width} inputs of"
            f" {whose} {'contains' if one else 'contain'} the"
            f" target: in all {event.rows} samples"
            f" {'by itself it determines' if one else 'each by itself determines'} the answer. The"
            " score is far higher than on new data.",
            fix="Drop the column, and every other value that is only known after the outcome.",
            related=[] if loader is None else [(event.place, "used for training")],
        )
