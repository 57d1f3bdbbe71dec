"""A column of the table has the same value in every training row.

## What it does

Finds columns of a table with one value in all training rows. `trueloop train table` leaves them
out.

## Why it breaks training

The model cannot learn from such a column, which is not a fault by itself. It may be the sign of
one: a join without matches, an export filtered by this column, a lost unit. A model that is later
used where the column does vary knows nothing about it.

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

At the start of `trueloop train table`, in the training rows. A missing value counts as a value: a
column that is sometimes missing and otherwise the same is not constant. A column of dates is
constant if its day, month, weekday and hour all are.
"""
