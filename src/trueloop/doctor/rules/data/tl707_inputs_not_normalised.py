"""Inputs of the first layer are not normalised (0 to 255, or as large).

## What it does

Measures the inputs of a model's first layer. If it is a linear, convolution or recurrent layer
without normalisation after it, they should be of the order of 1.

## Why it breaks training

Initialisations and learning rates are made for inputs of about 1. For pixels between 0 and 255 the
first activations are a hundred times too large: saturating activations do not recover, the loss
starts far too high, and the gradient of the first layer is a hundred times that of the others, so a
learning rate that it tolerates is far too small for them. Adam hides some of it.

## Wrong

```python
images = torch.from_numpy(images).float()  # 0 ... 255
```

## Right

```python
images = torch.from_numpy(images).float() / 255
images = (images - images.mean()) / images.std()
```

## Sources

- Y. LeCun et al., "Efficient BackProp", section 4.3 (normalizing the inputs):
  http://yann.lecun.com/exdb/publis/pdf/lecun-98b.pdf
- torchvision, [transforms.Normalize](https://docs.pytorch.org/vision/stable/generated/torchvision.transforms.Normalize.html)

## How it is detected

In a running program: in three batches the root mean square of the input of the first layer with
weights is above 40, with values above 100, and that layer is trained. Not reported: a division,
batch norm, layer norm or embedding in `forward` before that layer, a norm directly after it, and
models with loaded weights, which may have been trained on such inputs.
"""

from __future__ import annotations

import math

from trueloop.doctor.model.events import StateDictLoaded
from trueloop.doctor.model.measurements import FirstLayerInput
from trueloop.doctor.model.things import Model
from trueloop.doctor.rules.base import Rule


class InputsNotNormalised(Rule):
    code = "TL707"

    def __init__(self) -> None:
        super().__init__()
        self._large: dict[Model, int] = {}
        self._loaded: list[Model] = []

    def on_state_dict_loaded(self, event: StateDictLoaded) -> None:
        if isinstance(event.thing, Model):
            self._loaded.append(event.thing)

    def on_first_layer_input(self, event: FirstLayerInput) -> None:
        model = event.model
        if any(each.shares_parameters(model) for each in self._loaded):
            return
        size, largest = event.size, event.largest
        if not math.isfinite(size):
            return  # TL708
        if not (size > 40 and largest > 100):
            self._large[model] = -100
            return
        self._large[model] = self._large.get(model, 0) + 1
        if self._large[model] == 3:
            self.report(
                event.place,
                f"The inputs of the first layer (`{event.layer}`) are not"
                f" normalised: their root mean square is {size:.3g}, the largest value"
                f" {largest:.3g}. Default initialisation and learning rates expect values"
                " of about 1, so training is slow or unstable.",
                fix="Normalise them with the mean and standard deviation of the training set;"
                " for pixels, divide at least by 255.",
            )
