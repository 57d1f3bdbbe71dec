"""A loop over batches or epochs returns at the end of its first turn.

## What it does

Finds a `return` at the end of a loop's body, under no condition, whose value the loop adds up or
collects: the `return` is indented one level too far.

## Why it breaks training

The function returns after one batch. The rest of the data is never trained on, or never validated
on. The loss that is returned is that of one batch, divided by the number of all. Nothing raises:
the epoch is short, and the numbers look plausible.

## Wrong

```python
def train_epoch(model, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss.item()
        return total / len(loader)
```

## Right

```python
def train_epoch(model, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)
```

## Sources

- Python, [the return statement](https://docs.python.org/3/reference/simple_stmts.html#the-return-statement):
  `return` leaves the function, and with it every loop in it

## How it is detected

The last statement of the body of a loop over batches or epochs is a `return`, and its value names
what the body adds to (`total += ...`, `losses.append(...)`) and the loop did not begin, or is
divided by the length of the loader. Not reported: a `return` under a condition, a loop with
`continue` or `yield`, a loop that takes one batch to look at it, and `break`, which is how one
tries a program out.
"""

from __future__ import annotations

from trueloop.doctor.model.events import LoopLeft
from trueloop.doctor.model.things import NOWHERE
from trueloop.doctor.rules.base import Rule


class LoopReturnsInFirstTurn(Rule):
    code = "TL111"

    def on_loop_left(self, event: LoopLeft) -> None:
        loop = event.loop
        if event.returned is NOWHERE or loop.kind not in ("batches", "epochs"):
            return
        unit = "batch" if loop.kind == "batches" else "epoch"
        self.report(
            event.returned,
            f"This `return` ends the loop in its first turn: one {unit} is processed, the others"
            " never are, and the value is that of one turn.",
            related=[(loop.place, f"the loop over {'batches' if unit == 'batch' else 'epochs'}")],
            fix="Indent the `return` one level less, so that it follows the loop.",
        )
