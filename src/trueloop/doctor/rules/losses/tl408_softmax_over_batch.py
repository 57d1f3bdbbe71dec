"""A softmax runs over the batch instead of the classes.

## What it does

Finds a `softmax` or `log_softmax` over dimension 0 of a batch of logits whose result a
classification loss reads as the distribution over the classes.

## Why it breaks training

Each class is normalised over the samples of the batch, instead of each sample over the classes:
predictions depend on the other samples of the batch, and the probabilities of a sample do not sum
to one. The shapes are right and the loss falls (the network can still make the right entries
large), but accuracy stays well below what it should be, and changes with the batch size.

## Wrong

```python
def forward(self, x):                      # x: (N, features)
    return F.log_softmax(self.fc(x), dim=0)
```

## Right

```python
def forward(self, x):                      # x: (N, features)
    return F.log_softmax(self.fc(x), dim=1)
```

`dim=-1` is right for one sample as well as for a batch, where the classes come last.

## Sources

- PyTorch, [torch.nn.functional.softmax](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html):
  "dim: A dimension along which softmax will be computed".
- PyTorch, [NLLLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.NLLLoss.html):
  the input has shape (N, C), with the classes in dimension 1.

## How it is detected

The dimension is a literal 0, and the result reaches `NLLLoss` or `CrossEntropyLoss` as input
through shape operations only. The target is a whole batch of labels from a `DataLoader`: only then
is dimension 0 certainly the batch. Not reported: code where a single sample could be meant (no
loader, batches of one, labels taken one by one), and intended softmaxes over the batch (attention
over a bag, contrastive losses, policies on one observation).
"""

from __future__ import annotations

from trueloop.doctor.model.events import Loss
from trueloop.doctor.model.things import Tensor
from trueloop.doctor.rules.base import Rule

_OVER_CLASSES = ("NLLLoss", "CrossEntropyLoss")


class SoftmaxOverBatch(Rule):
    code = "TL408"

    def on_loss(self, event: Loss) -> None:
        criterion, source = event.criterion, event.input
        if not criterion.known or criterion.kind not in _OVER_CLASSES:
            return
        activation = source.activation if isinstance(source, Tensor) else None
        if activation is None or activation.dim != 0:
            return
        if activation.kind not in ("softmax", "log_softmax") or not _is_batch(event.target):
            return
        self.report(
            activation.place if activation.place.line else event.place,
            f"This {activation.kind} runs over dimension 0, the batch: each class is"
            f" normalised over the samples. `{criterion.name or criterion.kind}` reads the"
            " result as a distribution over classes.",
            related=[(event.place, "the loss that reads it")],
            fix="Use dim=1, or dim=-1 if the classes are the last dimension.",
        )


def _is_batch(target: object) -> bool:
    """It is a whole batch of labels: the input that it is compared with has the classes in
    dimension 1, and the batch in dimension 0."""
    if not isinstance(target, Tensor) or target.position is None or target.loader is None:
        return False
    return target.loader.known and target.loader.batch_size not in (None, 1)
