"""How steps, feeds, records and results show themselves, in a terminal and in a notebook."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import torch
from torch import nn

import trueloop
from trueloop import optimizers
from trueloop.doctor.model.findings import Finding
from trueloop.doctor.model.things import Location
from trueloop.records import EvalRecord, StepRecord


class _Cells(HTMLParser):
    """The caption and the cells of a table, and whether every tag is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        if tag in ("td", "th", "caption"):
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.cells[-1] += data


def test_a_training_shows_itself() -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    data = (torch.randn(10, 4), torch.arange(10) % 3)
    feed = trueloop.Feed(data, 4, shuffle=True)
    assert repr(feed) == "Feed(10 samples, 3 batches, batch_size=4, shuffled)"
    assert repr(trueloop.Feed(data, 4)) == "Feed(10 samples, 3 batches, batch_size=4, in order)"
    loss_fn = trueloop.supervised(nn.CrossEntropyLoss())
    step = trueloop.Step(
        model, optimizers.sgd(model, lr=0.5), loss_fn, accumulate=2, clip_norm=1.0,
        average=trueloop.EMA(0.9),
    )  # fmt: skip
    assert repr(step) == (
        "Step(Linear, SGD, fp32, accumulate=2, clip_norm=1, EMA(decay=0.9, warmup=False, "
        "use_buffers=True), cpu, 0 updates)"
    )
    first, second, *_ = [step(batch) for batch in feed.epoch(0)]
    assert repr(first) == (
        f"StepRecord(update 0, epoch 0, batch 0, loss {float(first.loss):.4g}, lr 0.5, 4 samples, "
        "window open)"
    )
    assert second.grad_norm is not None
    assert repr(second) == (
        f"StepRecord(update 1, epoch 0, batch 1, loss {float(second.loss):.4g}, "
        f"grad_norm {float(second.grad_norm):.4g}, lr 0.5, 8 samples)"
    )
    step.flush()
    fresh = trueloop.Step(model, optimizers.sgd(model, lr=0.5), loss_fn)
    history = trueloop.fit(fresh, feed, trueloop.Feed(data, 8), epochs=2)
    facts = (
        f"finished, 6 updates, best val_loss {history.best:.4g} (best_epoch={history.best_epoch}), "
        f"{history.seconds:,.1f} s"
    )
    assert repr(history) == f"History({facts})"
    cells = _Cells(history._repr_html_()).cells
    assert cells[:5] == [facts, "epoch", "update", "train_loss", "val_loss"]
    assert cells[5:] == [
        cell
        for one in history.records
        for cell in (
            str(one.epoch), str(one.update), f"{one['train_loss']:.4g}", f"{one['val_loss']:.4g}",
        )
    ]  # fmt: skip


def test_a_record_says_what_is_unusual_of_it() -> None:
    record = StepRecord(
        1, 7, 1234, torch.tensor(float("nan")), torch.tensor(float("inf")), 1e-4, 2048, False,
        skipped=True, parts={"kl": torch.tensor(0.25)},
    )  # fmt: skip
    assert repr(record) == (
        "StepRecord(update 1,234, epoch 1, batch 7, loss nan, kl 0.25, grad_norm inf, lr 0.0001, "
        "2,048 samples, skipped)"
    )
    scores = EvalRecord({"loss": 0.69314718, "a<b": 1.0}, 1000, details={"confusion": [[0] * 99]})
    assert repr(scores) == "EvalRecord(loss 0.6931, a<b 1, 1,000 samples)"
    assert _Cells(scores._repr_html_()).cells == [
        "1,000 samples", "score", "value", "loss", "0.6931", "a<b", "1",
    ]  # fmt: skip


def test_a_watched_block_shows_its_findings() -> None:
    watching = trueloop.watch(show=False)
    assert repr(watching) == "Watching(0 updates, no findings)"
    place = Location("train.py", 3, 0)
    watching.findings = [Finding("TL101", "zero-grad", "error", place, "a < b", "Move it.")]
    watching.updates = 12
    assert repr(watching) == "Watching(12 updates, TL101)"
    assert _Cells(watching._repr_html_()).cells[-5:] == [
        "TL101", "error", "train.py:3", "a < b", "Move it.",
    ]  # fmt: skip
