"""A comment that silences a rule silences nothing.

## What it does

Finds `# trueloop: ignore[…]` and `# trueloop: ignore-file[…]` comments that hold nothing back: the
rule finds nothing there, no rule is called so, or the comment is not closed and therefore means
nothing.

## Why it breaks training

It does not: this is advice. But a comment that outlived the fault it spoke of will hide the next
one on its line, and one with a mistyped code was never heard at all.

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

After all other rules have spoken, each code that a comment names is compared with what it held
back in its file. Codes that `--select` and `--ignore` leave out are not judged. Some faults show
only where another file of the project uses this one; check both together, as they are run.
`# trueloop: ignore[TL001]` on the line, or `ignore-file[TL001]`, silences this advice itself.
"""

from __future__ import annotations

from trueloop.doctor.model.findings import Location
from trueloop.doctor.rules.base import Rule


class UnusedIgnore(Rule):
    """Hears no events: what the comments of a file held back is known only at the very end."""

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
            "This comment silences nothing: there is no rule between its brackets.",
            fix="Write the code of a rule between them, such as [TL101].",
        )

    def unused(self, place: Location, codes: str, where: str) -> None:
        what = f"no {codes} was" if codes else "nothing was"
        self.report(
            place,
            f"This comment silences nothing: {what} found {where}.",
            fix=f"Remove {codes} from the comment." if codes else "Remove the comment.",
        )
