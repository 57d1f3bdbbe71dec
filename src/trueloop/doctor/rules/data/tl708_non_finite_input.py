"""NaN or infinity in a batch reaches a layer or the loss.

## What it does

Finds NaN or infinite values in a batch that reach a layer with weights, or the loss, and names the
samples.

## Why it breaks training

A single NaN makes the outputs of its sample NaN, then the loss of the batch and all gradients:
after the next step every weight is NaN. It comes from a missing value in a table, a corrupt file, a
division by a standard deviation of 0, or a logarithm of 0.

## Wrong

```python
frame = pandas.read_csv("data.csv")  # with empty cells
inputs = torch.tensor(frame.values, dtype=torch.float32)
```

## Right

```python
frame = frame.fillna(frame[train_rows].median())
assert torch.isfinite(inputs).all()
```

## Sources

- PyTorch, [torch.isfinite](https://docs.pytorch.org/docs/stable/generated/torch.isfinite.html)
- IEEE 754-2019, section 6.2: operations with NaN give NaN.

## How it is detected

In a running program: a loader's batch contains NaN or plus infinity, and in the same iteration so
does the input of a linear, convolution or recurrent layer, or the input or target of a loss that is
not finite. Also some rows of what such a layer of a training model gets as data, if no model has
returned such values before: rows that the program takes from a table itself, or scales in the loop;
here minus infinity counts as well. Not reported: values that are masked or imputed in between, and
minus infinity in a loader's batch that reaches no layer, which is used for masks.
"""

from __future__ import annotations

from trueloop.doctor.model.measurements import NonFiniteBatch
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called


class NonFiniteInput(Rule):
    code = "TL708"

    def on_non_finite_batch(self, event: NonFiniteBatch) -> None:
        samples = event.samples
        named = samples if samples else event.rows
        what = "samples" if samples else "rows"
        one = event.count == 1
        listed = ", ".join(str(each) for each in named)
        more = event.count - len(named)
        whose = f"of {called(event.loader, 'the data set')}" if samples else "of the batch"
        self.report(
            event.reached_at,
            f"{event.kind} in the data reaches `{event.reaches}`, in"
            f" {what.removesuffix('s') if one else what}"
            f" {listed}{f' and {more} more' if more > 0 else ''} {whose}: the loss and the"
            " weights become NaN.",
            fix="Remove these samples, or fill in the missing values, before batching.",
            related=[] if event.loader is None else [(event.place, "the batch that contains it")],
        )
