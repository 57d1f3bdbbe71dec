"""A column of the table has one value in every row that is trained on.

## What it does

Finds columns of a table that hold the same value in all training rows. `trueloop train table`
leaves them out.

## Why it breaks training

Nothing can be learned from such a column, and that is no fault by itself. It may be the sign of
one: a join that has matched nothing, an export that was filtered by this very column, a unit that
was lost. A model that is used later, where the column does vary, knows nothing of it.

## Wrong

```python
frame = frame[frame.country == "FR"]
model.fit(frame[["country", "age", "income"]], target)
```

## Right

```python
frame = frame[frame.country == "FR"].drop(columns=["country"])
model.fit(frame, target)
```

## Sources

- scikit-learn, [Removing features with low
  variance](https://scikit-learn.org/stable/modules/feature_selection.html)

## How it is detected

At the start of `trueloop train table`, in the training rows, and missing ones count as a value: a
column that is sometimes missing and else always the same is not constant. A column of dates is, if
its day, month, weekday and hour all are.
"""
