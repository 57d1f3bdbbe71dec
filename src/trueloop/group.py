"""process_group: a program of your own among the ranks of `torchrun`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from trueloop import _options, device as devices, ranks


@dataclass(frozen=True)
class Ranks:
    """This process among its peers: what `process_group` gives.

    Attributes:
        rank: its number, from 0; 0 in one process.
        count: how many ranks there are; 1 in one process.
        device: the device of this rank: `cuda:N` for the N-th rank of a host.
        is_main: whether it is rank 0, which prints and writes.
    """

    rank: int
    count: int
    device: torch.device
    is_main: bool


@contextmanager
def process_group(device: str | torch.device = "auto", *, minutes: float = 30.0) -> Iterator[Ranks]:
    """Join the ranks that `torchrun` has started into one process group, for a `with` block.

    The group is gloo for CPU tensors and nccl for those of CUDA. In one process this only picks the
    device.

        with trueloop.process_group() as group:
        model = make_model().to(group.device)
        step = trueloop.Step(model, optimizer, loss_fn, parallel="ddp")

    An error on one rank ends all of them within seconds, with its message printed once. The group
    is left however the program leaves the block.

    Args:
        device: of the model and the data: "auto", "cpu", "cuda", "cuda:1", "mps".
        minutes: after which a rank that waits for the others raises.

    Yields:
        This process among its peers.

    Raises:
        ConfigError: the environment does not say how to meet the others.
        DeviceError: the device is not there.
    """
    _options.positive("minutes", minutes, "30")
    picked = devices.pick(device)
    with ranks.joined(picked, minutes=minutes):
        yield Ranks(ranks.rank(), ranks.world_size(), picked, ranks.is_main())
