"""Gradients are clipped before `backward()` has computed them.

## What it does

Finds `clip_grad_norm_` or `clip_grad_value_` before the `backward()` whose gradients it should
limit, when no gradients exist.

## Why it breaks training

There is nothing to clip: the call returns a norm of 0 (`clip_grad_value_` may raise on the first
batch). Then `backward()` computes the gradients, and the step applies them unclipped. Training
works until a batch with a large gradient comes; then the loss spikes or becomes NaN. A logged
gradient norm of exactly 0 is the sign.

## Wrong

```python
optimizer.zero_grad()
loss = criterion(model(inputs), targets)
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
loss.backward()
optimizer.step()
```

## Right

```python
optimizer.zero_grad()
loss = criterion(model(inputs), targets)
loss.backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
optimizer.step()
```

## Sources

- PyTorch,
  [torch.nn.utils.clip_grad_norm_](https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html):
  "Gradients are modified in-place".
- Pascanu, Mikolov, Bengio, [On the difficulty of training recurrent neural
  networks](https://arxiv.org/abs/1211.5063), 2013: clipping acts on the gradient between its
  computation and the update.

## How it is detected

Since the optimizer's last step no gradient was computed when the call runs; a `backward()` of the
same iteration follows, and then a step without clipping in between. A call outside the loop counts
if gradients are cleared before `backward()`. Not reported: an infinite limit or a norm that is used
elsewhere (both measure), clipping one loss's gradient before the next is added, loops that step
first, and clipping of unknown parameters.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Backward, Clip, Event, OptimizerStep, ZeroGrad
from trueloop.doctor.model.findings import Move
from trueloop.doctor.rules.shared.step_order import StepRule, same_turn, supplies


class ClipBeforeBackward(StepRule):
    code = "TL104"

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        before, window = self.last_step(event.optimizer), self.window(event.optimizer)
        for clip, backward in self._idle(event, before, window):
            self.report_clip(
                clip,
                "runs before `backward()`, when no gradients exist yet: nothing is clipped, and the"
                " step applies the full gradients.",
                (backward, "computes the gradients"),
                [Move(clip.place, backward.place, "after")] if event.scaler is None else [],
            )

    def _idle(
        self, step: OptimizerStep, before: OptimizerStep | None, window: list[Event]
    ) -> list[tuple[Clip, Backward]]:
        """Calls that clipped nothing, each with the backward that it came too early for."""
        optimizer = step.optimizer
        found: list[tuple[Clip, Backward]] = []
        waiting: list[Clip] = []
        in_vain: list[Clip] = []
        """There was certainly nothing to clip, whatever came next."""
        fresh = cleared = empty = False
        for event in window:
            if self.may_clip(event, optimizer):
                assert isinstance(event, Clip)
                if fresh:
                    # It clips what earlier backwards left: on purpose, or of other micro-batches.
                    return []
                late = before is not None and _after(event, before) and not cleared
                if self.clips(event, optimizer) and not late:
                    waiting.append(event)
                    if empty and not event.result_used:
                        in_vain.append(event)
            elif isinstance(event, ZeroGrad):
                cleared = True
                empty = empty or self.clears(event, optimizer)
            elif supplies(event, optimizer):
                fresh = True
                if isinstance(event, Backward) and self.feeds(event, optimizer):
                    found += [
                        (clip, event)
                        for clip in waiting
                        if same_turn(clip, event)
                        or clip in in_vain
                        or (cleared and _outside_the_loop(clip, event))
                    ]
                waiting = []
        return found


def _after(clip: Clip, step: OptimizerStep) -> bool:
    """It clips what the step has applied already: of the same batch, or after the loop of that
    batch, in the same epoch."""
    after_loop = clip.turns and clip.turns == step.turns[: len(clip.turns)]
    return same_turn(clip, step) or bool(after_loop)


def _outside_the_loop(clip: Clip, backward: Backward) -> bool:
    """It runs once, before or after the loop that contains the backward, and nothing reads the
    norm."""
    entered = backward.turn is not None and len(backward.turns) > len(clip.turns)
    return entered and not clip.result_used and not clip.guards
