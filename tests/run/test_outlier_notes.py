"""Outlying updates in the log and the report: which, by how much, and of which samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import trueloop
from trueloop import Feed, Outliers, Run
from trueloop.feed.order import SampleOrder
from trueloop.run.report import write_report

SIZE, BATCH = 60, 4
POISONED = int(SampleOrder(SIZE, 3, 0).at(SIZE - 1))
"""The last sample of the first epoch: until then there are norms enough to judge by."""


def loss_fn(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    x, y = batch
    return (model(x) - y).square().mean()


def feed() -> Feed:
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(SIZE, n, generator=generator) for n in (3, 1))
    y[POISONED] = 1e4
    return Feed((x, y), BATCH, shuffle=True, seed=3)


def make_step(action: str, accumulate: int) -> trueloop.Step:
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    policy = Outliers(factor=8.0, action=action, window=16, min_updates=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return trueloop.Step(model, optimizer, loss_fn, outliers=policy, accumulate=accumulate)


def places(epochs: int) -> list[tuple[int, int]]:
    """Epoch and batch of the poisoned sample, by the order function alone."""
    orders = [SampleOrder(SIZE, 3, epoch).at(range(SIZE)).tolist() for epoch in range(epochs)]
    return [(epoch, order.index(POISONED) // BATCH) for epoch, order in enumerate(orders)]


@pytest.mark.parametrize("action", ["skip", "clip"])
@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("log_every", [None, "7 updates"])
def test_an_outlier_is_named_in_the_log(
    tmp_path: Path, action: str, accumulate: int, log_every: str | None
) -> None:
    run = Run.create(tmp_path / "run", config={})
    step = make_step(action, accumulate)
    trueloop.fit(step, feed(), epochs=4, run=run, log_every=log_every)
    notes = [line for line in run.metrics() if line["kind"] == "note"]
    found = [(line["epoch"] - 1, line["batch"] // accumulate) for line in notes]
    assert found == [(epoch, batch // accumulate) for epoch, batch in places(4)]
    done = {"skip": "skipped", "clip": "clipped"}[action]
    for line in notes:
        assert line["outlier"] == action
        assert POISONED in line["samples"]
        order = SampleOrder(SIZE, 3, line["epoch"] - 1).at(range(SIZE)).tolist()
        first = line["batch"] // accumulate * accumulate * BATCH
        assert line["samples"] == order[first : first + accumulate * BATCH]
        number = line["update"] + (action == "skip")
        assert line["message"].startswith(f"update {number} {done}: gradient norm ")
        shown = ", ".join(str(sample) for sample in line["samples"][:8])
        assert f"times the median {line['median']:.3g}; samples {shown}" in line["message"]
        assert line["grad_norm"] > 8 * line["median"]
    run.write_results({"status": "finished", "epochs": 4, "updates": step.updates})
    page = write_report(run).read_text(encoding="utf-8")
    assert f"4 updates were {done} because the gradient norm was far above its running" in page
    assert "not finite (" not in page
    assert page.count("; samples ") == 0


def test_the_log_of_a_resumed_run_names_the_same(tmp_path: Path) -> None:
    def trained(name: str, stops: tuple[int, ...]) -> list[dict[str, Any]]:
        run = Run.create(tmp_path / name, config={})
        saved = trueloop.Checkpoints(run.checkpoints, every="3 updates", keep_best="train_loss")
        for stop in (*stops, None):
            step, resumed = make_step("skip", 1), None
            if saved.folder.exists() and any(saved.folder.iterdir()):
                resumed = trueloop.load_checkpoint(saved.folder)

            def ended(record: Any, step: Any = step, stop: int | None = stop) -> None:
                if step.updates == stop:
                    raise KeyboardInterrupt

            try:
                trueloop.fit(
                    step, feed(), epochs=3, run=run, checkpoints=saved, sinks=[ended],
                    resume_from=resumed,
                )  # fmt: skip
            except KeyboardInterrupt:
                continue
        times = ("time", "seconds")
        return [{k: v for k, v in line.items() if k not in times} for line in run.metrics()]

    straight = trained("straight", ())
    assert sum(line["kind"] == "note" for line in straight) == 3
    assert trained("stopped", (5, 14, 20, 31)) == straight


def test_samples_of_a_stream_are_not_known(tmp_path: Path) -> None:
    class Numbers(torch.utils.data.IterableDataset[tuple[Tensor, Tensor]]):
        def __iter__(self) -> Any:
            for x, y in feed().epoch(0):
                yield from zip(x, y, strict=True)

    stream = Feed(Numbers(), BATCH)
    assert stream.sample_indices(0, 0) is None
    run = Run.create(tmp_path / "run", config={})
    trueloop.fit(make_step("skip", 1), stream, epochs=1, run=run)
    (note,) = [line for line in run.metrics() if line["kind"] == "note"]
    assert note["samples"] is None
    assert "samples" not in note["message"]


def test_sample_indices_are_those_of_the_batches() -> None:
    numbers = Feed(torch.arange(10), 4, shuffle=True, seed=5)
    for epoch in range(2):
        batches = [batch.tolist() for batch in numbers.epoch(epoch)]
        assert [numbers.sample_indices(epoch, k) for k in range(3)] == batches
        assert numbers.sample_indices(epoch, 1, 2) == batches[1] + batches[2]
    dropped = Feed(torch.arange(10), 4, drop_last=True)
    assert dropped.sample_indices(0, 1, 5) == [4, 5, 6, 7]
    assert dropped.sample_indices(0, 7) == []
    assert Feed(torch.utils.data.DataLoader(list(range(4)))).sample_indices(0, 0) is None
