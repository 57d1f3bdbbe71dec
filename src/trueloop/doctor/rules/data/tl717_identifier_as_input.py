"""A column that only identifies the row is an input of the model.

## What it does

Finds a column of whole numbers, different in (almost) every row, that has the name of an identifier
or is the row's number in the file.

## Why it breaks training

A row's number carries no information about other rows. With it the model can memorise the training
rows. If the file is sorted, or numbers were assigned in order of time, the number also predicts the
validation rows, but not later rows.

## Wrong

```python
inputs = frame.drop(columns=["survived"])      # with PassengerId
```

## Right

```python
inputs = frame.drop(columns=["survived", "PassengerId"])
```

## Sources

- S. Kaufman, S. Rosset, C. Perlich, [Leakage in Data Mining: Formulation, Detection, and
  Avoidance](https://doi.org/10.1145/2382577.2382579)

## How it is detected

At the start of `trueloop train table`, in files of at least 100 rows: nine in ten values occur
once, and the column's name ends in `id`, `index`, `key`, `number` or similar, or each value is one
more than the previous one. Not reported: names that count time (year, day, step), numbers with
fractions, and text, which is not an input if (almost) every row has a different value.
"""
