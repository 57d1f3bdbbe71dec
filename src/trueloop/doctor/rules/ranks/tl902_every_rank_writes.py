"""All ranks write the same file.

## What it does

Finds `torch.save` that runs in every process of a distributed program with the same file name.

## Why it breaks training

The processes overwrite each other. Usually the last one wins, and everything works for months;
otherwise the file contains bytes of two of them, or a rank reads it while a different one writes,
and the checkpoint cannot be loaded. On a shared disk it is also slow.

## Wrong

```python
dist.init_process_group("nccl")
...
torch.save(model.module.state_dict(), "model.pt")
```

## Right

```python
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "model.pt")
dist.barrier()
```

## Sources

- PyTorch, "Getting Started with Distributed Data Parallel", "Save and Load Checkpoints":
  https://docs.pytorch.org/tutorials/intermediate/ddp_tutorial.html

## How it is detected

A program creates a process group and then calls `torch.save` without a condition on the rank, in a
function that does not return early on other ranks, with a file name that does not depend on the
rank. Not reported: names of unknown origin, a process group with one rank (an argument, or
`WORLD_SIZE` set by the program), and files under a guard on the world size (`if`, `raise`,
`assert`).
"""

from __future__ import annotations

from trueloop.doctor.model.events import FileSaved, Used
from trueloop.doctor.model.findings import Location
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import asks_for_rank, makes_world_of_one


class EveryRankWrites(Rule):
    code = "TL902"

    def __init__(self) -> None:
        super().__init__()
        self._group: Location | None = None

    def on_used(self, event: Used) -> None:
        if event.what == "torch.distributed.init_process_group":
            self._group = None if makes_world_of_one(event) else event.place

    def on_file_saved(self, event: FileSaved) -> None:
        if self._group is None or event.by_rank is not False or asks_for_rank(event.guards):
            return
        if event.world_of_one:
            return
        self.report(
            event.place,
            "Every rank writes to this same file: they overwrite each other, and the file"
            " may be corrupt.",
            fix="Save on one rank only: `if dist.get_rank() == 0:`.",
            related=[(self._group, "creates the process group")],
        )
