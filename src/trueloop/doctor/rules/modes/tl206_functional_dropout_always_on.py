"""`F.dropout(x)` in a module's `forward` stays on in eval mode.

## What it does

Finds functional dropout in a module that is called without the module's mode.

## Why it breaks training

`nn.Dropout` follows the mode of its module; `F.dropout` is a function whose argument `training`
defaults to `True`. Without it, `model.eval()` has no effect: validation, test and inference drop
activations at random. Validation scores are too low and change from call to call, and early
stopping follows the noise. Training itself is right.

## Wrong

```python
def forward(self, x):
    x = F.relu(self.fc1(x))
    x = F.dropout(x, p=0.5)
    return self.fc2(x)
```

## Right

```python
def forward(self, x):
    x = F.relu(self.fc1(x))
    x = F.dropout(x, p=0.5, training=self.training)
    return self.fc2(x)
```

## Sources

- PyTorch,
  [torch.nn.functional.dropout](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html):
  "training (bool): apply dropout if is `True`. Default: `True`"

- Shen et al., [Natural TTS Synthesis by Conditioning WaveNet on Mel Spectrogram
  Predictions](https://arxiv.org/abs/1712.05884), 2018, section 2.2: the pre-net

## How it is detected

The call is in a method of a module (or in what such a method calls), certainly without `training`,
by name or by position. An explicit `training=True` is accepted. Not reported: calls under a
condition on the mode (`if self.training:`, an early return), probability 0, functions outside of
any module, and a "Prenet", whose dropout Tacotron 2 keeps on at inference.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Used
from trueloop.doctor.model.findings import Location, Remedy, Replace
from trueloop.doctor.model.things import Model
from trueloop.doctor.rules.base import Rule


class FunctionalDropoutAlwaysOn(Rule):
    code = "TL206"

    def on_used(self, event: Used) -> None:
        head, _, name = event.what.rpartition(".")
        if head != "torch.nn.functional" or "dropout" not in name:
            return
        given = event.arguments
        if given["training"] is not False or given["asks"] or given["p"] in (0, 0.0):
            return
        module = given["module"]
        if not isinstance(module, Model) or "prenet" in module.kind.lower():
            return
        self.report(
            event.place,
            f"`{name}` ignores the module's train/eval mode: dropout stays on after"
            " `eval()`, so validation and inference drop activations at random.",
            fix="Pass `training=self.training`, or use `nn.Dropout`.",
            remedies=_remedy(given["last"], given["self"]),
        )


def _remedy(last: Location | None, receiver: str) -> list[Remedy]:
    """Add an argument after the last one, if the module has a name here."""
    if last is None or not receiver:
        return []
    return [Replace(last, f"{{}}, training={receiver}.training")]
