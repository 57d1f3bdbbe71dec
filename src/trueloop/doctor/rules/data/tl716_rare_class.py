"""One class is rare among the training samples.

## What it does

Finds a class with less than a tenth of the share that it would have if all classes were equally
frequent; of two classes, one with less than a tenth of the samples.

## Why it breaks training

Rare classes are ordinary, and no fault of the data. But accuracy says little then: a model that
never names the rare class can be right in 97% of all samples, and chosen as the best one for it.

## Wrong

```python
best = max(scores, key=lambda epoch: epoch["val_accuracy"])    # 3% of the samples are positive
```

## Right

```python
best = max(scores, key=lambda epoch: epoch["val_f1"])
```

## Sources

- H. He and E. Garcia, [Learning from Imbalanced Data](https://doi.org/10.1109/TKDE.2008.239)

## How it is detected

At the start of `trueloop train table` and `trueloop train images`, by the classes of the training
samples; and of `trueloop train text --tokenizer char`, where the held-out text has characters that
the training text has not: the model never sees them, and cannot predict them.
"""
