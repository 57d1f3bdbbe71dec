"""One class is rare among the training samples.

## What it does

Finds a class with less than a tenth of the share that it would have if all classes were equally
frequent; with two classes, one with less than a tenth of the samples.

## Why it breaks training

Rare classes are normal. But accuracy then says little: a model that never predicts the rare class
can be right in 97% of all samples, and be chosen as the best one.

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
samples; and of `trueloop train text --tokenizer char`, if the held-out text has characters that the
training text does not have: the model cannot predict them.
"""
