"""The GPU multiplies float32 matrices at full precision, without its tensor cores.

## What it does

Finds models that consist mostly of float32 matrix products, on a GPU whose tensor cores could
compute them, if forward and backward take half of the time or more.

## Why it breaks training

Nothing is wrong, but training is slow. From the Ampere generation on, tensor cores multiply float32
matrices in TF32, with a 10-bit mantissa, several times faster; most trainings do not notice the
difference. Convolutions use it by default, matrix products only on request.

## Wrong

```python
model = Transformer().cuda()
```

## Right

```python
torch.set_float32_matmul_precision("high")
model = Transformer().cuda()
```

## Sources

- PyTorch,
  [torch.set_float32_matmul_precision](https://docs.pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html)
- PyTorch, [TensorFloat-32 on Ampere (and later)
  devices](https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices)

## How it is detected

In a program on an NVIDIA GPU of compute capability 8.0 or later: the precision is `highest`, the
model runs outside of autocast, three quarters or more of its parameters are float32 matrices of
linear, attention or recurrent layers, one of them at least 256 wide and high, and forward and
backward take half of an update or more, by the GPU's clock.
"""

from __future__ import annotations

from trueloop.doctor.model.events import ModelForward
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.speed_measurements import MatrixProducts
from trueloop.doctor.model.things import Model
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called
from trueloop.doctor.rules.shared.timings import counts, duration, percent

SHARE = 0.5
PART = 0.75
WIDTH = 256


class Fp32Matmul(Rule):
    code = "TS107"

    def __init__(self) -> None:
        super().__init__()
        self.called: dict[Model, Location] = {}
        """Models that were called outside of autocast, and where."""

    def on_model_forward(self, event: ModelForward) -> None:
        if event.autocast:
            self.called.pop(event.model, None)
        elif event.grad:
            self.called.setdefault(event.model, event.place)

    def on_matrix_products(self, event: MatrixProducts) -> None:
        if not counts(event.updates) or event.updates.device != "cuda":
            return
        place = self.called.get(event.model)
        if place is None or event.share < SHARE:
            return
        if event.part < PART or event.widest < WIDTH:
            return
        whole = duration(event.share * event.updates.seconds)
        self.report(
            place,
            f"The matrix products of {called(event.model, 'this model')} run in full"
            " float32 precision, without the GPU's tensor cores; forward and backward"
            f" take {whole}, {percent(event.share)} of each update.",
            fix='Call torch.set_float32_matmul_precision("high") at the start.',
        )
