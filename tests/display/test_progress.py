import io
import itertools
import math
import os
import pty
import re
import sys
import threading

import pytest
import torch
from rich.console import Console

import warm_python
from step_records import step_record
from trueloop.display import ProgressDisplay
from trueloop.display.screens import Lines, Terminal
from trueloop.records import EvalRecord, StepRecord


class Clock:
    """Stands still until it is moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("trueloop.display.progress_display.time.perf_counter", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def said(stream: io.StringIO) -> list[str]:
    text = stream.getvalue()
    assert "\x1b" not in text, "no control characters without a terminal"
    return text.splitlines()


def train(
    progress: ProgressDisplay,
    clock: Clock,
    *,
    epochs: int,
    batches: int,
    seconds: float,
    until: int = 0,
) -> None:
    """A run whose validation loss falls, except in every third epoch."""
    for epoch in range(until or epochs):
        for batch in range(batches):
            clock.now += seconds
            progress(step_record(epoch * batches + batch + 1, batches=batches))
        loss = 1 / (epoch + 1) + 0.5 * (epoch % 3 == 2)
        progress(EvalRecord({"train_loss": 0.5, "val_loss": loss, "val_accuracy": 0.25}, 9, epoch))


def test_without_a_terminal_each_slow_epoch_is_a_line(clock: Clock) -> None:
    stream = io.StringIO()
    with ProgressDisplay(epochs=3, batches=4, monitor="val_loss", screen=Lines(stream)) as progress:
        train(progress, clock, epochs=3, batches=4, seconds=3.0)
    assert said(stream) == [
        "epoch 1/3  train loss 0.5000  val loss 1.000  val accuracy 0.2500",
        "epoch 2/3  train loss 0.5000  val loss 0.5000  val accuracy 0.2500",
        "epoch 3/3  train loss 0.5000  val loss 0.8333  val accuracy 0.2500",
        "best val loss 0.5000 at epoch 2",
    ]


def test_many_short_epochs_do_not_scroll_by(clock: Clock) -> None:
    stream = io.StringIO()
    with ProgressDisplay(
        epochs=1000, batches=4, monitor="val_loss", screen=Lines(stream)
    ) as progress:
        train(progress, clock, epochs=1000, batches=4, seconds=0.0005)
    lines = said(stream)
    assert len(lines) <= 14
    assert lines[0].startswith("epoch    1/1000")
    assert lines[-2].startswith("epoch 1000/1000")
    shown = [int(line.split("/")[0].split()[1]) for line in lines[:-1]]
    assert max(b - a for a, b in itertools.pairwise(shown)) <= 101


def test_a_run_that_ends_early_still_says_its_last_epoch(clock: Clock) -> None:
    stream = io.StringIO()
    with ProgressDisplay(epochs=1000, monitor="val_loss", screen=Lines(stream)) as progress:
        train(progress, clock, epochs=1000, batches=2, seconds=0.001, until=7)
    lines = said(stream)
    assert [line.split("  train")[0] for line in lines] == [
        "epoch    1/1000", "epoch    7/1000", "best val loss 0.1429 at epoch 7"
    ]  # fmt: skip


def test_a_resumed_run_does_not_claim_the_best_epoch(clock: Clock) -> None:
    stream = io.StringIO()
    with ProgressDisplay(epochs=5, batches=2, monitor="val_loss", screen=Lines(stream)) as progress:
        progress(step_record(7, batches=2))
        progress(EvalRecord({"val_loss": 3.0}, 9, 3))
    assert said(stream) == ["epoch 4/5  val loss 3.000"]


def test_skipped_updates_are_said_and_then_counted(clock: Clock) -> None:
    stream = io.StringIO()
    with ProgressDisplay(epochs=2, batches=3000, screen=Lines(stream)) as progress:
        for update in range(1203, 1303):
            clock.now += 0.001
            progress(step_record(1203, batches=3000, skipped=True, batch=update))
    assert said(stream) == [
        "update 1,204 skipped: its gradient was not finite",
        "99 more updates skipped: the gradients were not finite",
    ]


def test_a_long_epoch_gives_a_sign_of_life(clock: Clock) -> None:
    stream = io.StringIO()
    with ProgressDisplay(epochs=2, batches=1000, screen=Lines(stream)) as progress:
        for update in range(1, 131):
            clock.now += 1.0
            progress(step_record(update, batches=1000))
    lines = said(stream)
    assert len(lines) == 2
    assert re.match(
        r"epoch 1/2  batch 60/1,000  loss 0\.9\d+  32:20 left  64 samples/s  norm 1\.8\d+  "
        r"lr [\d.]+  update 60",
        lines[0],
    )


class Watched(torch.Tensor):
    """A scalar that counts how often it is read."""

    reads = 0

    def __float__(self) -> float:
        Watched.reads += 1
        return 1.0


def test_tensors_are_read_only_when_shown(clock: Clock) -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    loss = torch.tensor(1.0).as_subclass(Watched)
    Watched.reads = 0
    with ProgressDisplay(epochs=1, batches=1000, screen=Terminal(console)) as progress:
        for update in range(1, 1001):
            clock.now += 0.001
            progress(step_record(update, batches=1000, loss=loss, grad_norm=None))
    assert 1 <= Watched.reads <= 4


@pytest.mark.parametrize("width", [30, 60, 100])
def test_the_live_line_fits_its_terminal(clock: Clock, width: int) -> None:
    console = Console(file=io.StringIO(), width=width, force_terminal=True)
    screen = Terminal(console)
    progress = ProgressDisplay(epochs=100, batches=32, monitor="val_loss", screen=screen)
    train(progress, clock, epochs=100, batches=32, seconds=0.004, until=21)
    probe = Console(file=io.StringIO(), width=width)
    assert progress._record is not None
    probe.print(screen.renderable(progress._status(progress._record, clock.now)))
    assert isinstance(probe.file, io.StringIO)
    lines = probe.file.getvalue().splitlines()
    assert len(lines) <= 2
    assert all(len(line) <= width for line in lines)
    assert "epoch  21/100" in lines[0]
    if width == 100:
        assert "left" in lines[0]
        assert "samples/s" in lines[0]
        assert "loss 0." in lines[0]
    progress.close()


def test_speed_leaves_evaluations_out_and_time_left_does_not(clock: Clock) -> None:
    console = Console(file=io.StringIO(), width=120, force_terminal=True)
    progress = ProgressDisplay(epochs=4, batches=10, screen=Terminal(console))
    facts: dict[str, str] = {}
    for epoch in range(2):
        for batch in range(10):
            clock.now += 1.0
            record = step_record(epoch * 10 + batch + 1, batches=10)
            progress(record)
            facts = progress._facts(record, clock.now) if batch == 9 else facts
        clock.now += 10.0
        progress(EvalRecord({"val_loss": 1.0}, 9, epoch, seconds=10.0))
    assert facts["speed"] == "64 samples/s"
    # 29 s for 19 of the 40 batches, the first one only starting the clock.
    assert facts["left"] == f"0:{20 * 29 / 19:.0f} left"
    progress.close()


def test_nan_scores_and_unknown_lengths_are_fine(clock: Clock) -> None:
    stream = io.StringIO()
    with ProgressDisplay(epochs=2, monitor="val_loss", screen=Lines(stream)) as progress:
        for epoch in range(2):
            for batch in range(3):
                clock.now += 3
                progress(step_record(1, epoch=epoch, batch=batch, loss=torch.tensor(math.nan)))
            progress(EvalRecord({"val_loss": math.nan}, 9, epoch))
        assert progress.batches == 3
    assert said(stream) == ["epoch 1/2  val loss NaN", "epoch 2/2  val loss NaN"]


def test_scores_that_do_not_fit_give_way_to_the_monitored_one(clock: Clock) -> None:
    stream = io.StringIO()
    scores = {f"val_score_{k}": 0.5 for k in range(40)} | {"val_loss": 1.0, "train_loss": 2.0}
    with ProgressDisplay(epochs=1, monitor="val_score_39", screen=Lines(stream)) as progress:
        progress(EvalRecord(scores, 9, 0))
    line = said(stream)[0]
    assert len(line) <= 100
    assert "train loss 2.000  val loss 1.000  val score 39 0.5000  val score 0 0.5000" in line


SCRIPT = """
import time, torch
from trueloop.records import EvalRecord, StepRecord
from trueloop.display import ProgressDisplay
with ProgressDisplay(epochs=3, batches=20, monitor="val_loss") as progress:
    for epoch in range(3):
        for batch in range(20):
            time.sleep(0.02)
            update = epoch * 20 + batch + 1
            progress(StepRecord(epoch, batch, update, torch.tensor(0.5), None, 0.1, 64, True))
        if epoch == 1:
            print("the user's own words")
        progress(EvalRecord({"val_loss": 1.0 - epoch / 4}, 10, epoch))
"""


def test_at_a_terminal_the_line_is_live_and_leaves_no_trace() -> None:
    main, other = pty.openpty()
    parts: list[bytes] = []

    def collect() -> None:
        while True:
            try:
                part = os.read(main, 65536)
            except OSError:
                return
            if not part:
                return
            parts.append(part)

    reader = threading.Thread(target=collect)
    reader.start()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    environment.pop("NO_COLOR", None)
    words, streams = [sys.executable, "-c", SCRIPT], {"stdout": other, "stderr": other}
    done = warm_python.run(words, start=warm_python.Bare, env=environment, **streams)
    assert done.returncode == 0
    os.close(other)
    reader.join(timeout=10)
    os.close(main)
    text = b"".join(parts).decode()
    assert "samples/s" in text
    assert "\x1b[?25l" in text
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l"), "the cursor is shown again"
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in text.split("\r\n")]
    assert any(line.endswith("the user's own words") for line in lines)
    assert any("epoch 3/3  val loss 0.5000" in line for line in lines)


def test_an_open_window_counts_its_samples_once() -> None:
    progress = ProgressDisplay(epochs=1, batches=5, screen=Lines(io.StringIO()))
    windows = [(8, True), (8, False), (16, False), (24, True), (8, True)]  # the first is the start
    for batch, (samples, updated) in enumerate(windows):
        record = StepRecord(0, batch, 1, torch.tensor(1.0), None, 0.1, samples, updated)
        progress(record)
    assert progress._speed.samples == 32
    progress.close()
