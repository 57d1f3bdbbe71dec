"""The gradient jumps far above its running level, and the loss follows it up.

## What it does

Finds an update whose gradient is tens or thousands of times as large as those before it, and after
which the loss stays where training once began, or above.

## Why it breaks training

A step in the direction of such a gradient is no step downhill: it throws the weights to a place
where nothing that was learnt holds any more. Recurrent networks meet cliffs of this kind, training
at the edge of stability grows into them over a few updates, a single odd batch can cause one. The
loss is finite and the run goes on, for hours, from weights that are worse than fresh ones.

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

While the program runs: the gradient of one small parameter is followed from update to update as it
is applied, after clipping and unscaling (on an accelerator only in the updates that are looked at).
Where it stands out, the norm of all gradients is compared with the median of those sampled before;
thirty times that, ten times the largest of them, and a loss that in the next 32 updates stays at
one and a half times the largest loss of calm times, at three times the median, and at half of where
training began at least, is a finding if the norm of the weights has grown by half (in that very
update, where the loss has jumped before it: else other data began). Silent for several optimizers
in turns (GANs), for losses without a target from the data (reinforcement learning), in the first
hundred updates, and where the loss comes back or becomes NaN (TH101).
"""

from __future__ import annotations

from trueloop.doctor.model.events import Measured
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called


class GradientExplodes(Rule):
    code = "TH102"

    def on_measured(self, event: Measured) -> None:
        if event.what != "gradient jump":
            return
        values = event.values
        level, ceiling, late = values["before"], values["ceiling"], values["late"]
        followed = values["followed"] >= 10 and values["above"] >= 0.5
        risen = late >= max(1.5 * ceiling, 3 * level, 0.5 * values["begin"])
        if not followed or not risen or values["weights"] < 1.5:
            return
        times = values["norm"] / values["level"]
        rate = "" if values["rate"] is None else f" with a learning rate of {values['rate']:g}"
        self.report(
            event.place,
            f"At update {values['update']} of {called(event.subject, 'the optimizer')} the"
            f" gradient norm was {values['norm']:.2g}, {times:,.0f} times its average of"
            f" {values['level']:.2g} over the previous {values['over']} updates{rate}. The"
            f" loss rose from {level:.2g} to {values['peak']:.2g} within"
            f" {values['within']} updates and was {late:.2g} {values['followed']} updates"
            " later.",
            fix="Clip the gradient norm (`torch.nn.utils.clip_grad_norm_`), or lower the"
            " learning rate.",
        )
