"""Our own loops on two ranks, watched: no false alarm, and one rank reports what all find."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

import trueloop
from on_ranks import on_ranks
from trueloop import ranks
from trueloop.doctor.live.sampling_schedule import FIRST
from trueloop.doctor.live.watcher import Watcher

EPOCHS = 4


def network() -> nn.Module:
    return nn.Sequential(
        nn.Linear(6, 32), nn.LayerNorm(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3)
    )


def feeds() -> tuple[trueloop.Feed, trueloop.Feed]:
    """The last global batch of an epoch is short, and leaves the second rank with less."""
    x = torch.randn(251, 6, generator=torch.Generator().manual_seed(1))
    y = x[:, :3].argmax(1)
    return trueloop.Feed((x, y), 16, shuffle=True), trueloop.Feed((x[:50], y[:50]), 20)


def step_of(model: nn.Module, parallel: str, accumulate: int = 1) -> trueloop.Step:
    return trueloop.Step(
        model,
        trueloop.optimizers.adamw(model, 1e-2),
        trueloop.supervised(nn.CrossEntropyLoss()),
        schedule=trueloop.schedules.warmup_cosine(warmup="1 epoch"),
        clip_norm=1.0,
        accumulate=accumulate,
        parallel=parallel,
    )


def by_hand(parallel: str, accumulate: int) -> None:
    model = network()
    step, (train, val) = step_of(model, parallel, accumulate), feeds()
    step.plan(epochs=EPOCHS, batches=len(train))
    for epoch in range(EPOCHS):
        model.train()
        batches = train.epoch(epoch)
        for batch in batches:
            step(batch, last=batches.last, stand_in=batches.stand_in)
        step.end_epoch(trueloop.evaluate(step.model, val, step.loss_fn))


def by_fit(parallel: str, accumulate: int) -> None:
    step, (train, val) = step_of(network(), parallel, accumulate), feeds()
    trueloop.fit(step, train, val, epochs=EPOCHS, progress=False)


def collectives() -> int:
    """How many this rank has taken part in."""
    group: Any = dist.distributed_c10d._get_default_group()
    count: int = group._get_sequence_number_for_group()
    return count


def _watched(parallel: str) -> list[Any]:
    """What is found in two loops, and whether the watcher had a part in any collective."""
    told: list[Any] = []
    for train, accumulate in ((by_hand, 1), (by_fit, 2)):
        torch.manual_seed(0)
        before = collectives()
        train(parallel, accumulate)
        alone = collectives() - before
        torch.manual_seed(0)
        watcher = Watcher()
        watcher.nonfinite.bundles = ""
        watcher.start()
        train(parallel, accumulate)
        watcher.stop()
        own = collectives() - before - 2 * alone
        found = [(each.code, each.place) for each in watcher.findings()]
        told += [found, watcher.hub.errors, own]
        assert accumulate == 2 or watcher.hub.updates > FIRST
    return told


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_right_loops_raise_no_alarm_and_wait_for_nobody(parallel: str) -> None:
    for told in on_ranks(2, _watched, parallel):
        assert told == [[], [], 0] * 2


class Faulty(nn.Module):
    """Its middle layers are in a plain list, on some ranks."""

    def __init__(self, *, hides: bool) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.layers = [nn.Linear(8, 8)] if hides else ()  # this line is to be named
        self.last = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        out: Tensor = self.last(x)
        return out


def _told(folder: str, which: list[int]) -> tuple[str, list[Any], list[str]]:
    """What a rank prints, keeps and finds; ranks in `which` have the fault."""
    run = trueloop.Run.create(Path(folder) / "run", config={}, environment={})
    with contextlib.redirect_stderr(io.StringIO()) as said:
        with trueloop.Doctor(run) as doctor:
            model = Faulty(hides=ranks.rank() in which)
            step, (train, val) = step_of(model, "ddp"), feeds()
            trueloop.fit(step, train, val, epochs=2, sinks=[doctor], progress=False)
        assert doctor.errors == []
    ranks.barrier("what the first rank keeps")
    return said.getvalue(), run.findings or [], [each.seen_in for each in doctor.findings]


def line_of(text: str) -> int:
    lines = Path(__file__).read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize(("which", "where"), [([0, 1], ""), ([1], "rank 1")])
def test_the_first_rank_keeps_what_all_find(which: list[int], where: str, tmp_path: Path) -> None:
    (said, kept, found), (silent, _, _) = on_ranks(2, _told, str(tmp_path), which)
    assert silent == ""
    assert said.count("\n") == 1
    assert said.startswith("trueloop: error TL303, ")
    assert (f"(only on {where})" in said) is bool(where)
    assert found == [where]
    (told,) = kept
    assert (told["code"], told["line"]) == ("TL303", line_of("is to be named"))
    assert told.get("seen_in", "") == where
    assert json.dumps(told)
