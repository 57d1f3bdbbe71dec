"""`torch.load` with `weights_only=False` runs any code that the file contains.

## What it does

Finds `torch.load(..., weights_only=False)`. A checkpoint is a pickle: loading it this way can
import and call anything that the file names. A file that may come from elsewhere is a warning, one
that the program itself has written is advice.

## Why it breaks training

Training is not affected, until the file comes from somebody else: then loading it runs their code
with your rights. Files from model hubs and issue trackers have been used for attacks. Since torch
2.6 the default is `weights_only=True`, which loads tensors, numbers, strings and containers of
them, and refuses the rest.

## Wrong

```python
checkpoint = torch.load(args.weights, weights_only=False)
```

## Right

```python
checkpoint = torch.load(args.weights, weights_only=True)
```

Allow a class that the file needs by name: `torch.serialization.add_safe_globals`.

## Sources

- PyTorch, `torch.load` (warning): https://docs.pytorch.org/docs/stable/generated/torch.load.html
- PyTorch, "Serialization semantics": https://docs.pytorch.org/docs/stable/notes/serialization.html

## How it is detected

`torch.load` of a file with the constant `weights_only=False`. A warning where the path comes from
the command line or the environment, where the file is downloaded, and where a model loads weights
from a file that is named in the program and that the program never saves. Advice where the program
saves this file, or files of the same keys, where only the folder of some data is an option, and
where nothing says where the path comes from (a function's parameter, an entry of a configuration).
Not reported: the default, options that are not constants, a buffer in memory that the program
itself wrote, and tests.
"""

from __future__ import annotations

from trueloop.doctor.model.events import (
    Ended,
    FileDownloaded,
    FileLoaded,
    FileSaved,
    StateDictLoaded,
)
from trueloop.doctor.model.findings import Replace
from trueloop.doctor.model.things import Model
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import checkpoint_of
from trueloop.doctor.rules.shared.own_files import IN_MEMORY, OwnFiles


class UnsafeLoad(Rule):
    code = "TL802"
    hygiene = True

    def __init__(self) -> None:
        super().__init__()
        self.files = OwnFiles()
        self.weights: list[FileLoaded] = []
        """Files that a model took its weights from."""

    def on_file_saved(self, event: FileSaved) -> None:
        self.files.add(event)

    def on_file_downloaded(self, event: FileDownloaded) -> None:
        self.files.add(event)

    def on_file_loaded(self, event: FileLoaded) -> None:
        self.files.add(event)

    def on_state_dict_loaded(self, event: StateDictLoaded) -> None:
        checkpoint = checkpoint_of(event.state)
        found = self.files.load_of(checkpoint) if checkpoint is not None else None
        if found is not None and isinstance(event.thing, Model):
            self.weights.append(found)

    def on_ended(self, event: Ended) -> None:
        for load in self.files.loaded:
            if load.weights_only is False and load.file != IN_MEMORY:
                self._report(load)

    def _report(self, load: FileLoaded) -> None:
        why = self._from_elsewhere(load)
        own = (
            "The program writes such files itself, so this is"
            if self.files.is_own(load)
            else ("Where this file comes from is not seen here; of the program's own files this is")
        )
        self.report(
            load.place,
            "`weights_only=False` executes any code that the file contains"
            + (f", and {why}." if why else f". {own} advice."),
            fix=(
                "Pass `weights_only=True`, and allow the classes that the file needs with"
                " `torch.serialization.add_safe_globals`."
            ),
            severity=None if why else "advice",
            remedies=[Replace(load.option, "True")] if load.option.line else [],
        )

    def _from_elsewhere(self, load: FileLoaded) -> str:
        """Why the file may come from elsewhere; empty if that is not seen."""
        if self.files.is_download(load):
            return "this file is downloaded"
        if self.files.is_own(load):
            return ""
        if load.path.source == "outside" and not load.path.name:
            return "its path comes from outside the program"
        if load.path.source and load in self.weights:
            return "nothing in the program writes this file"
        return ""
