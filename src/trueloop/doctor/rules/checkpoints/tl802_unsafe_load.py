"""`torch.load` with `weights_only=False` runs any code that the file contains.

## What it does

Finds `torch.load(..., weights_only=False)`. A checkpoint is a pickle: loading it this way can
import and call anything that the file names. A file that the program downloads is a warning; one
that it has written, or that the user names, is advice.

## Why it breaks training

Training is not affected, until the file comes from somebody else: then loading it runs their code
with your rights. Files from model hubs and issue trackers have been used for attacks. Since torch
2.6 the default is `weights_only=True`, which loads tensors, numbers, strings and containers of
them, and refuses the rest.

## Wrong

```python
checkpoint = torch.load(hf_hub_download("some/model", "model.bin"), weights_only=False)
```

## Right

```python
checkpoint = torch.load(hf_hub_download("some/model", "model.bin"), weights_only=True)
```

Allow a class that the file needs by name: `torch.serialization.add_safe_globals`.

## Sources

- PyTorch, `torch.load` (warning): https://docs.pytorch.org/docs/stable/generated/torch.load.html
- PyTorch, "Serialization semantics": https://docs.pytorch.org/docs/stable/notes/serialization.html

## How it is detected

`torch.load` of a file with the constant `weights_only=False`. A warning where the text shows that
the file comes from the network: from a hub, a URL, a response or an upload. Advice everywhere else:
whoever names a file on the command line mostly names one of their own training's. Not reported: the
default, options that are not constants, a buffer in memory that the program itself wrote, and
tests.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Ended, FileDownloaded, FileLoaded, FileSaved
from trueloop.doctor.model.findings import Replace
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.own_files import IN_MEMORY, OwnFiles


class UnsafeLoad(Rule):
    code = "TL802"
    hygiene = True

    def __init__(self) -> None:
        super().__init__()
        self.files = OwnFiles()

    def on_file_saved(self, event: FileSaved) -> None:
        self.files.add(event)

    def on_file_downloaded(self, event: FileDownloaded) -> None:
        self.files.add(event)

    def on_file_loaded(self, event: FileLoaded) -> None:
        self.files.add(event)

    def on_ended(self, event: Ended) -> None:
        for load in self.files.loaded:
            own = load.file == IN_MEMORY and not self.files.is_download(load)
            if load.weights_only is False and not own:
                self._report(load)

    def _report(self, load: FileLoaded) -> None:
        downloaded = self.files.is_download(load)
        if downloaded:
            whose = ", and this one comes from the network."
        elif self.files.is_own(load):
            whose = ". The program writes such files itself, so this is advice."
        else:
            whose = (
                ". Where this file comes from is not seen here; of files of your own this is"
                " advice."
            )
        self.report(
            load.place,
            f"`weights_only=False` executes any code that the file contains{whose}",
            fix=(
                "Pass `weights_only=True`, and allow the classes that the file needs with"
                " `torch.serialization.add_safe_globals`."
            ),
            severity=None if downloaded else "advice",
            remedies=[Replace(load.option, "True")] if load.option.line else [],
        )
