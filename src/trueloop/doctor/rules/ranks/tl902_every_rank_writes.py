"""All ranks write the same file.

## What it does

`torch.save` runs in every process of a distributed program with the same file name.

## Why it breaks training

The processes write over each other. With luck the last one wins and all is well, for months;
without it the file holds bytes of two of them, or is read by one rank while another is writing,
and the checkpoint that would have saved the run cannot be loaded. On a shared disk it is slow,
too.

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

A program sets up a process group and then calls `torch.save` under no condition that asks for the
rank, in no function that leaves early on other ranks, with a file name that is made of parts that
do not depend on the rank. Silent where the name comes from somewhere that is not seen, and in a run
whose process group has one rank.
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
        self.report(
            event.place,
            "Every rank writes to this same file: they overwrite each other, and the file"
            " may be corrupt.",
            fix="Save on one rank only: `if dist.get_rank() == 0:`.",
            related=[(self._group, "creates the process group")],
        )
