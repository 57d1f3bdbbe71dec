"""Two columns of the table hold the same.

## What it does

Finds columns that are equal in all rows, that hold one quantity in two units (any straight line
between them), or that name the same things in other words, such as `class` beside `pclass`.

## Why it breaks training

Training goes on well enough; what is doubled is the column's weight under weight decay, the time it
takes, and what importances say of either. If one of the two was made from the other, a change to
one of them later, in the data that the model is used on, gives rows that training has never seen.

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

At the start of `trueloop train table`, in up to 20,000 training rows: columns of few values (five
rows for each, at least) that divide the rows alike; columns of numbers that are the same, to a
millionth of their deviation, once they are centred and scaled. Silent where fewer than 20 rows have
another value than the most frequent one.
"""
