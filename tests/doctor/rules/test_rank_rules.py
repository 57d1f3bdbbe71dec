"""Samplers that share the data out among ranks, and loaders that do not get them."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

SHARED = """
import argparse, torch
from torch.utils.data import BatchSampler, DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
parser = argparse.ArgumentParser()
parser.add_argument("--distributed", action="store_true")
parser.add_argument("--ranks", type=int)
args = parser.parse_args()
data = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
held_out = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
if {when}:
    torch.distributed.init_process_group("nccl")
    sampler = DistributedSampler({of})
else:
    sampler = None
{loader}
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(10):
    if sampler is not None:
        sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        average_gradients(model)
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("when", "of", "loader", "expected"),
    [
        (
            "args.distributed",
            "data",
            "loader = DataLoader(data, batch_size=8, shuffle=sampler is None)",
            ["TL903"],
        ),
        ("True", "data", "loader = DataLoader(data, 8, shuffle=True, drop_last=True)", ["TL903"]),
        (
            "args.ranks > 1",
            "data",
            "def load(samples, size):\n    return DataLoader(samples, size, shuffle=True)\n"
            "loader = load(data, 16)",
            ["TL903"],
        ),
        ("args.distributed", "data", "loader = DataLoader(data, 8, sampler=sampler)", []),
        (
            "args.distributed",
            "data",
            "loader = DataLoader(data, 8, sampler=sampler if args.distributed else None)",
            [],
        ),
        (
            "True",
            "data",
            "loader = DataLoader(data, batch_sampler=BatchSampler(sampler, 8, True))",
            [],
        ),
        (
            "args.distributed",
            "data",
            "if args.ranks > 1:\n    loader = DataLoader(data, 8, sampler=sampler)\n"
            "else:\n    loader = DataLoader(data, 8, shuffle=True)",
            [],
        ),
        ("True", "held_out", "loader = DataLoader(data, 8, shuffle=True)", []),
        ("True", "data", "loader = shared_out(data, sampler)", []),
    ],
)
def test_a_sampler_that_no_loader_gets(
    when: str, of: str, loader: str, expected: list[str]
) -> None:
    text = SHARED.format(when=when, of=of, loader=loader)
    found = check_text(text, "<text>", strict=True).findings
    assert [each.code for each in found if each.severity != "advice"] == expected
