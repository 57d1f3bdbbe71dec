"""Rows that are ordered in time, or that belong to groups, are split at random.

## What it does

Finds a column of times, or of groups of rows (a patient, a customer, a session), in a table whose
rows are split into training and validation at random.

## Why it breaks training

Rows of one day, or of one patient, are similar. With a random split most validation rows have
similar training rows, and the score measures known days and known patients. On tomorrow's rows, or
for a new patient, the model does worse than its score. Nothing raises.

## Wrong

```python
train, val = train_test_split(visits, test_size=0.2)
```

## Right

```python
days = visits.when.sort_values()
train, val = visits[visits.when < days.iloc[-200]], visits[visits.when >= days.iloc[-200]]
```

## Sources

- S. Kaufman, S. Rosset, C. Perlich, [Leakage in Data Mining: Formulation, Detection, and
  Avoidance](https://doi.org/10.1145/2382577.2382579)
- [Cross-validation iterators for grouped
  data](https://scikit-learn.org/stable/modules/cross_validation.html#cross-validation-iterators-for-grouped-data),
  and for time series, in scikit-learn's guide

## How it is detected

At the start of `trueloop train table` with `--split random` and without `--val-data`: a column of
dates (other than dates of birth), or of numbers called `year`, `date`, `time` or similar that rises
from row to row; a column called `id`, `patient`, `customer` or similar that repeats most of its ten
or more values, none of them in more than half of the rows. Dropped columns count too.
"""
