"""Which rank writes: an argument says so, or nothing does (TL902)."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

PROGRAM = """
import argparse
import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--backend", default="nccl")
args = parser.parse_args()


def rank():
    if not dist.is_initialized():
        return 0
    return dist.get_rank()


class Saver:
    def __init__(self, model, writes=True):
        self.model, self.writes = model, writes

    def save(self, path):
        if not path or not self.writes:
            return
        torch.save(self.model.state_dict(), path)


def train(loader):
    model = torch.nn.Linear(4, 1)
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {saver}
    for epoch in range(10):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        {save}


dist.init_process_group(args.backend)
data = torch.load("data.pt")
sampler = torch.utils.data.DistributedSampler(data)
train(torch.utils.data.DataLoader(data, sampler=sampler))
"""
SAVE = "saver.save('model.pt')"


def codes(saver: str, save: str) -> list[str]:
    found = check_text(PROGRAM.format(saver=saver, save=save), "train.py", strict=True).findings
    return [each.code for each in found if each.severity != "advice"]


@pytest.mark.parametrize(
    "saver",
    [
        "saver = Saver(model, writes=rank() == 0)",
        "is_main_process = rank() == 0\n    saver = Saver(model, writes=is_main_process and True)",
    ],
)
def test_an_argument_that_says_who_writes(saver: str) -> None:
    assert codes(saver, SAVE) == []


@pytest.mark.parametrize(
    ("saver", "save"),
    [
        ("saver = Saver(model)", SAVE),
        ("saver = Saver(model, writes=len(loader) > 0)", SAVE),
        ("pass", "if dist.is_initialized(): torch.save(model.state_dict(), 'model.pt')"),
    ],
)
def test_every_rank_writes(saver: str, save: str) -> None:
    assert codes(saver, save) == ["TL902"]
