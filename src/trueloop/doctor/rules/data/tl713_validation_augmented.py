"""Training and validation parts share one data set object with random transforms.

## What it does

Finds `random_split` or `Subset` on a data set whose samples are augmented at random. Both parts
read the same object, so the validation samples are augmented too.

## Why it breaks training

Validation uses random crops, flips and noise: the score is noisy and too low, and early stopping,
schedules and the choice of the best epoch follow the noise. Nothing raises. Setting
`val_set.dataset.transform` afterwards does not help: it is the same object, so the training part
loses its augmentation.

## Wrong

```python
data = ImageFolder("images", transform=Compose([RandomResizedCrop(224), ToTensor()]))
train_set, val_set = random_split(data, [0.8, 0.2])
```

## Right

```python
train_data = ImageFolder("images", transform=augmenting)
val_data = ImageFolder("images", transform=plain)
order = torch.randperm(len(train_data), generator=torch.Generator().manual_seed(0)).tolist()
train_set = Subset(train_data, order[:cut])
val_set = Subset(val_data, order[cut:])
```

## Sources

- PyTorch, `torch.utils.data.random_split` and `Subset`:
  https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.random_split
- PyTorch, "Transfer Learning for Computer Vision Tutorial" (two sets of transforms):
  https://docs.pytorch.org/tutorials/beginner/transfer_learning_tutorial.html

## How it is detected

Two parts of one data set object are read, one for training and one for evaluation without gradients
or in eval mode, and reading a sample draws random numbers in an augmentation: a `Random...`
transform of a library, user code with such a name, or a function or object that the data set holds
as its `transform`. In source, also two assignments to the transform of one object, through two of
its parts (`train_set.dataset.transform = a`, then `val_set.dataset.transform = b`), with no forward
pass in between. Not reported: separate objects for each part, a wrapper that augments only the
training part, and draws that are not an augmentation (masked words, pairs, views and negative
samples are the task itself).
"""

from __future__ import annotations

from trueloop.doctor.model.events import Backward, Ended, ModelForward
from trueloop.doctor.model.things import Dataset
from trueloop.doctor.model.value_events import TransformSet
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import batch_loop, called, lineage, trained_loader


class ValidationAugmented(Rule):
    code = "TL713"

    def __init__(self) -> None:
        super().__init__()
        self._trained: dict[Dataset, Dataset] = {}
        """The whole data set -> the part of it that is trained on."""
        self._learned: set[Dataset] = set()
        self._evaluated: dict[Dataset, Dataset] = {}
        """Parts of data sets that were trained on by a different part, each with the whole."""
        self._set: dict[Dataset, TransformSet] = {}
        """The transform that it was given last, if nothing was read since."""

    def on_transform_set(self, event: TransformSet) -> None:
        before = self._set.get(event.dataset)
        self._set[event.dataset] = event
        if before is None or before.part == event.part or before.value is event.value:
            return
        self.report(
            event.place,
            f"`{event.part}.dataset` and `{before.part}.dataset` are one data set object: this"
            f" replaces the transform that `{before.part}` got at line {before.place.line}, and"
            " both parts are read with this one.",
            fix="Create a second data set object with the other transform, and take the indices of"
            " one part from it.",
            related=[(before.place, "has no effect"), (event.dataset.made, "the shared data set")],
        )

    def on_backward(self, event: Backward) -> None:
        loader = trained_loader(event)
        if loader is not None and loader.dataset is not None:
            parts = list(lineage(loader.dataset))
            self._learned.add(parts[0])
            if len(parts) > 1:
                self._trained[parts[-1]] = parts[0]

    def on_model_forward(self, event: ModelForward) -> None:
        self._set.clear()
        loop = batch_loop(event)
        loader = loop.loader if loop is not None else None
        if loader is None or loader.dataset is None or (event.grad and event.training is not False):
            return
        part, whole = loader.dataset, list(lineage(loader.dataset))[-1]
        if whole not in self._trained or part is whole or part is self._trained[whole]:
            return
        self._evaluated.setdefault(part, whole)

    def on_ended(self, event: Ended) -> None:
        for part, whole in self._evaluated.items():
            if part not in self._learned:  # as that of the next task, or of the next fold
                self._report(part, whole)

    def _report(self, part: Dataset, whole: Dataset) -> None:
        named = [draw for draw in part.draws or () if draw.name]
        if not named:
            return
        self.report(
            part.made,
            f"{called(part, 'This validation part')} reads the same data set object as the"
            f" training part: the random augmentation (`{named[0].name}`) also changes the"
            " validation samples, and the score changes with every evaluation.",
            fix="Create a second data set object without random transforms, and take the"
            " validation indices from it.",
            related=[
                (whole.made, "the shared data set"),
                (named[0].place, "random transform"),
            ],
        )
