"""Rows that are ordered in time, or that belong to groups, are divided at random.

## What it does

Finds a column of times, or one that names a group of rows (a patient, a customer, a session), in a
table whose rows are divided into training and validation at random.

## Why it breaks training

Rows of one day, or of one patient, are alike. Divided at random, most validation rows have such
relatives among the training rows, and the score says how well a model does between days that it
knows and for patients that it knows. Where it is to be used on tomorrow's rows, or for a new
patient, it does worse than its score, and nothing raises.

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
dates (other than dates of birth), or of numbers that is called `year`, `date`, `time` or the like
and rises from row to row; a column called `id`, `patient`, `customer` or the like that repeats
most of its ten or more values, none of them in more than half of the rows. Dropped columns count
too.
"""
