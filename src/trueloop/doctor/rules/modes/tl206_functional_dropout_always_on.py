"""`F.dropout(x)` in a module's `forward` stays on in eval mode.

## What it does

Finds functional dropout in a module that is called without the module's mode, and dropout layers
that are made where they are called.

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

The call is in the `forward` of a module (or in what it calls), certainly without `training`, by
name or by position; or a dropout layer is made in that `forward` and called there,
`nn.Dropout(0.5)(x)`, which no `eval()` reaches (in source); or it is `scaled_dot_product_attention`
with a `dropout_p`, which it applies in both modes (a number, or in a program that trains the
module), or xformers' or flash-attn's function of that kind. An explicit `training=True` is
accepted. Not reported: calls under a condition on the mode (`if self.training:`, an early return),
probability 0 (also as the default of an option), Monte-Carlo dropout (evaluation calls the module
again and again with one input), an option that only the calls of the training turn on, an argument
that is off unless a caller turns it on (`def forward(self, x, sample=False)`), functions outside of
any module, other methods (noise that sampling drops on purpose), modules that the program only
trains while it evaluates others, a discriminator or critic that nothing evaluates, and a "Prenet",
whose dropout Tacotron 2 keeps on at inference.
"""

from __future__ import annotations

import itertools
import re

from trueloop.doctor.model.events import (
    Backward,
    Ended,
    EscapedToUnknown,
    FunctionalDropout,
    GradTaken,
    ModelForward,
)
from trueloop.doctor.model.findings import Location, Remedy, Replace
from trueloop.doctor.model.things import Model
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.passes import Forwards

_CRITIC = re.compile(r"discriminat|critic", re.I)
_ATTENTION = re.compile(r"scaled_dot_product_attention|memory_efficient_attention|flash_attn_\w+")


class FunctionalDropoutAlwaysOn(Rule):
    code = "TL206"

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[FunctionalDropout] = []
        self.forwards = Forwards()
        self.escaped: set[Model] = set()

    def on_functional_dropout(self, event: FunctionalDropout) -> None:
        if event.training is not False or event.asks_mode or event.p in (0, 0.0):
            return
        if event.module is None or "prenet" in event.module.kind.lower():
            return
        functions = (place.function for place in (event.place, *event.stack))
        if any(function.rpartition(".")[2] == "forward" for function in functions):
            self.calls.append(event)

    def on_model_forward(self, event: ModelForward) -> None:
        self.forwards.add(event)

    def on_backward(self, event: Backward) -> None:
        self.forwards.through(event)

    def on_grad_taken(self, event: GradTaken) -> None:
        self.forwards.through(event)

    def on_escaped_to_unknown(self, event: EscapedToUnknown) -> None:
        self.escaped.update(thing for thing in event.things if isinstance(thing, Model))

    def on_ended(self, event: Ended) -> None:
        for call in self.calls:
            if call.module is None or self._is_only_trained(call.module):
                continue
            if self._is_critic(call.module):
                continue
            if self._is_asked_for(call.module):
                continue
            if call.p is None and _ATTENTION.match(call.function) and not self._trains(call.module):
                continue  # a rate that is 0 in most configurations, in a file of layers alone
            self._report(call)

    def _trains(self, module: Model) -> bool:
        used = (self.forwards.by_serial.get(serial) for serial in self.forwards.used)
        return any(each is not None and each.model.covers(module) for each in used)

    def _is_only_trained(self, module: Model) -> bool:
        """The program calls it to train it and evaluates a different module (a GAN's generator)."""
        if any(model.shares_parameters(module) for model in self.escaped):
            return False
        calls = list(self.forwards.by_serial.values())
        own = [each for each in calls if each.model.covers(module)]
        others = [each for each in calls if not each.model.shares_parameters(module)]
        return (
            bool(own) and any(map(self._evaluates, others)) and not any(map(self._evaluates, own))
        )

    def _is_critic(self, module: Model) -> bool:
        """The discriminator of a GAN, which nothing evaluates: only training calls it."""
        own = [each for each in self.forwards.by_serial.values() if each.model.covers(module)]
        models = [module, *(each.model for each in own)]
        names = [f"{model.kind} {model.name}" for model in models]
        return any(map(_CRITIC.search, names)) and not any(map(self._evaluates, own))

    def _is_asked_for(self, module: Model) -> bool:
        """Evaluation calls the module several times with one input (Monte-Carlo dropout), or only
        training turns an option of it on."""
        own = [each for each in self.forwards.by_serial.values() if each.model.covers(module)]
        trained = [each for each in own if each.serial in self.forwards.used]
        evaluated = [each for each in own if each.serial not in self.forwards.used]
        for one, two in itertools.pairwise(evaluated):
            learns = any(one.serial < each.serial < two.serial for each in trained)
            if _is_same_call(one, two) and not learns:
                return True
        options = frozenset.intersection(*(each.flags for each in trained)) if trained else set()
        return bool(evaluated) and any(
            value and all((name, True) not in each.flags for each in evaluated)
            for name, value in options
        )

    def _evaluates(self, event: ModelForward) -> bool:
        return event.training is False or event.serial not in self.forwards.used

    def _report(self, event: FunctionalDropout) -> None:
        if event.function[:1].isupper():
            self.report(
                event.place,
                f"This `{event.function}` is made in `forward`, in train mode: dropout stays on"
                " after `eval()`, so validation and inference drop activations at random.",
                fix=f"Make it once, in `__init__`: `self.dropout = nn.{event.function}(...)`.",
            )
            return
        self.report(
            event.place,
            f"`{event.function}` ignores the module's train/eval mode: dropout stays on after"
            " `eval()`, so validation and inference drop activations at random.",
            fix=f"Pass `{_rate(event.function)}=self.dropout if self.training else 0.0`."
            if _ATTENTION.match(event.function)
            else "Pass `training=self.training`, or use `nn.Dropout`.",
            remedies=_remedy(event.last_argument, event.receiver),
        )


def _rate(function: str) -> str:
    return "p" if function == "memory_efficient_attention" else "dropout_p"


def _is_same_call(one: ModelForward, two: ModelForward) -> bool:
    """The same expression with the same input."""
    return (
        one.place == two.place
        and bool(one.inputs)
        and len(one.inputs) == len(two.inputs)
        and all(a is b for a, b in zip(one.inputs, two.inputs, strict=True))
    )


def _remedy(last: Location | None, receiver: str) -> list[Remedy]:
    """Add an argument after the last one, if the module has a name here."""
    if last is None or not receiver:
        return []
    return [Replace(last, f"{{}}, training={receiver}.training")]
