"""`torch.load` with `weights_only=False` runs any code that the file contains.

## What it does

Finds `torch.load(..., weights_only=False)`. A checkpoint is a pickle: loading it this way can
import and call anything that the file names.

## Why it breaks training

Training is not affected, until the file comes from somebody else: then loading it runs their code
with your rights. Files from model hubs and issue trackers have been used for attacks. Since torch
2.6 the default is `weights_only=True`, which loads tensors, numbers, strings and containers of
them, and refuses the rest.

## Wrong

```python
checkpoint = torch.load("model.pt", weights_only=False)
```

## Right

```python
checkpoint = torch.load("model.pt", weights_only=True)
```

Allow a class that the file needs by name: `torch.serialization.add_safe_globals`.

## Sources

- PyTorch, `torch.load` (warning): https://docs.pytorch.org/docs/stable/generated/torch.load.html
- PyTorch, "Serialization semantics": https://docs.pytorch.org/docs/stable/notes/serialization.html

## How it is detected

`torch.load` of a file with the constant `weights_only=False`. Not reported: the default, options
that are not constants, and a buffer in memory that the program itself wrote.
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
