"""The gradient jumps far above its usual norm, and the loss rises after it.

## What it does

Finds an update whose gradient is tens or thousands of times as large as those before it, and after
which the loss stays at its initial level, or above.

## Why it breaks training

A step along such a gradient destroys what was learnt. Recurrent networks have cliffs of this kind,
training at the edge of stability reaches them in a few updates, and a single bad batch can cause
one. The loss is finite and the run continues, for hours, from weights that are worse than new ones.

## Wrong

```python
loss.backward()
optimizer.step()
```

## Right

```python
loss.backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
optimizer.step()
```

## Sources

- Pascanu, Mikolov and Bengio, [On the difficulty of training recurrent neural
  networks](https://arxiv.org/abs/1211.5063), 2013
- Cohen et al., [Gradient Descent on Neural Networks Typically Occurs at the Edge of
  Stability](https://arxiv.org/abs/2103.00065), 2021

## How it is detected

In a running program: the gradient of one small parameter is followed at every update, after
clipping and unscaling (on an accelerator only in sampled updates). If it is a spike, the norm of
all gradients is compared with the median of earlier samples. A finding needs a norm thirty times
that median and ten times the largest of them; a loss that for the next 32 updates stays at 1.5
times its largest calm value, at three times the median, and at least at half of its initial value;
and a norm of the weights that has grown by half (in that same update, if the loss jumped before it:
otherwise the data changed). Not reported: several optimizers in turns (GANs), losses without a
target from the data (reinforcement learning), the first hundred updates, and a loss that recovers
or becomes NaN (TH101).
"""

from __future__ import annotations

from trueloop.doctor.model.measurements import GradientJump
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called


class GradientExplodes(Rule):
    code = "TH102"

    def on_gradient_jump(self, event: GradientJump) -> None:
        level, ceiling, late = event.before, event.ceiling, event.late
        followed = event.followed >= 10 and event.above >= 0.5
        risen = late >= max(1.5 * ceiling, 3 * level, 0.5 * event.begin)
        if not followed or not risen or event.weights < 1.5:
            return
        times = event.norm / event.level
        rate = "" if event.rate is None else f" with a learning rate of {event.rate:g}"
        self.report(
            event.place,
            f"At update {event.update} of {called(event.optimizer, 'the optimizer')} the"
            f" gradient norm was {event.norm:.2g}, {times:,.0f} times its average of"
            f" {event.level:.2g} over the previous {event.over} updates{rate}. The"
            f" loss rose from {level:.2g} to {event.peak:.2g} within"
            f" {event.within} updates and was {late:.2g} {event.followed} updates"
            " later.",
            fix="Clip the gradient norm (`torch.nn.utils.clip_grad_norm_`), or lower the"
            " learning rate.",
        )
