"""`torch.load` with `weights_only=False` runs whatever code the file holds.

## What it does

A checkpoint is a pickle. With `weights_only=False` loading it may import and call anything that the
file names.

## Why it breaks training

It does not, until the file comes from somebody else: then loading a model is running a program of
theirs, with your rights, before you have seen a single number. Files from model hubs and issue
trackers have been used so. Since torch 2.6 the default is `weights_only=True`, which loads tensors,
numbers, texts and containers of them and refuses the rest.

## Wrong

```python
checkpoint = torch.load("model.pt", weights_only=False)
```

## Right

```python
checkpoint = torch.load("model.pt", weights_only=True)
```

A class that the file really needs can be allowed by name: `torch.serialization.add_safe_globals`.

## Sources

- PyTorch, `torch.load` (warning): https://docs.pytorch.org/docs/stable/generated/torch.load.html
- PyTorch, "Serialization semantics": https://docs.pytorch.org/docs/stable/notes/serialization.html

## How it is detected

`torch.load` of a file with the constant `weights_only=False`. Silent for the default, for options
that are not constants, and for a buffer in memory that the program itself wrote.
"""

from __future__ import annotations

from trueloop.doctor.model.events import FileLoaded
from trueloop.doctor.model.findings import Replace
from trueloop.doctor.rules.base import Rule


class UnsafeLoad(Rule):
    code = "TL802"

    def on_file_loaded(self, event: FileLoaded) -> None:
        if event.weights_only is not False or event.file == "<memory>":
            return
        self.report(
            event.place,
            "`weights_only=False` executes any code that the file contains.",
            fix=(
                "Pass `weights_only=True`, and allow the classes that the file needs with"
                " `torch.serialization.add_safe_globals`."
            ),
            remedies=[Replace(event.option, "True")] if event.option.line else [],
        )
