"""An ignore comment suppresses nothing.

## What it does

Finds `# trueloop: ignore[…]` and `# trueloop: ignore-file[…]` comments that suppress no finding:
the rule finds nothing there, the code does not exist, or the bracket is not closed.

## Why it breaks training

It does not break anything: this is advice. But a comment that stays after its fault was fixed hides
the next fault on that line, and a mistyped code never suppressed anything.

## Wrong

```python
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # trueloop: ignore[TL101]
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
```

## Right

```python
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
```

## Sources

- Ruff, [unused-noqa (RUF100)](https://docs.astral.sh/ruff/rules/unused-noqa/), which does the same
  for its own comments.

## How it is detected

After all other rules have run, each code in a comment is compared with the findings it suppressed
in its file. Codes excluded with `--select` or `--ignore` are not checked. Some faults only show
when a different file of the project uses this one: check both together.
"""

from __future__ import annotations

from trueloop.doctor.model.findings import Location
from trueloop.doctor.rules.base import Rule


class UnusedIgnore(Rule):
    """Hears no events: which findings the comments of a file suppressed is known only at the very
    end."""

    code = "TL001"

    def unknown(self, place: Location, why: str) -> None:
        self.report(
            place,
            f"This comment silences nothing: {why}",
            fix="Write the code of an existing rule.",
        )

    def unclosed(self, place: Location) -> None:
        self.report(
            place,
            "This comment silences nothing: its brackets name no rule.",
            fix="Write the code of a rule between them, such as [TL101].",
        )

    def unused(self, place: Location, codes: str, where: str) -> None:
        what = f"no {codes} was" if codes else "nothing was"
        self.report(
            place,
            f"This comment silences nothing: {what} found {where}.",
            fix=f"Remove {codes} from the comment." if codes else "Remove the comment.",
        )
