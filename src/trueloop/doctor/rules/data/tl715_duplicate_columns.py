"""Two columns of the table contain the same information.

## What it does

Finds columns that are equal in all rows, that give one quantity in two units (any linear relation),
or that encode the same categories differently, such as `class` beside `pclass`.

## Why it breaks training

Training works; but the quantity counts twice under weight decay and in training time, and its
importance is divided between the columns. If one column was derived from the other and only one of
them changes later, the model gets rows that it has never seen.

## Wrong

```python
columns = ["pclass", "class", "celsius", "fahrenheit"]
```

## Right

```python
columns = ["class", "celsius"]
```

## Sources

- C. Dormann and others, [Collinearity: a review of methods to deal with it and a simulation study
  evaluating their performance](https://doi.org/10.1111/j.1600-0587.2012.07348.x)

## How it is detected

At the start of `trueloop train table`, in up to 20,000 training rows: columns with few values (at
least five rows per value) that divide the rows in the same way; columns of numbers that are the
same after centring and scaling, to a millionth of their deviation. Not reported: fewer than 20 rows
with a value other than the most frequent one.
"""
