"""A column that merely names the row is an input of the model.

## What it does

Finds a column of whole numbers, another one in (almost) every row, that is called an identifier or
is the row's number in the file.

## Why it breaks training

The number of a row says nothing about any other row. With it a model can learn the training rows by
heart; and where the file is sorted, or customers got their numbers one after the other, the number
tells the answer in the validation rows, too, and in no row that comes later.

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

At the start of `trueloop train table`, in files of 100 rows or more: nine in ten values occur once,
and the column's name ends in `id`, `index`, `key`, `number` or the like, or each value is one more
than the value above. Silent for names that count time (year, day, step), for numbers with
fractions, and for text, which is left out where (almost) every row has its own.
"""
