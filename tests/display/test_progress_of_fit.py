"""What `fit` shows by default, and that showing it changes nothing."""

from __future__ import annotations

import io
import logging
import random
import re
import sys
from contextlib import nullcontext, redirect_stderr
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import trueloop
from bits import same
from on_ranks import on_ranks
from trueloop import ranks
from trueloop.display import screens
from trueloop.errors import ConfigError
from trueloop.records import EvalRecord, StepRecord

LOSS = trueloop.supervised(nn.CrossEntropyLoss())


def data(n: int = 96) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(n, 8, generator=torch.Generator().manual_seed(1))
    return x, x[:, :3].argmax(1)


def train(
    epochs: int = 2, *, val: bool = True, stderr: Any = None, **options: Any
) -> tuple[nn.Module, Any]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    step = trueloop.Step(model, optimizer, LOSS, parallel="ddp" if ranks.is_distributed() else None)
    feed = trueloop.Feed(data(), 16, shuffle=True, seed=3)
    scored = trueloop.Feed(data(20), 20) if val else None
    if not {"updates", "tokens"} & options.keys():
        options["epochs"] = epochs
    # Not in a fixture: pytest puts its own there before each test.
    with nullcontext() if stderr is None else redirect_stderr(stderr):
        return model, trueloop.fit(step, feed, scored, **options)


class Screen(io.StringIO):
    """A terminal's stream that keeps all that is written to it."""

    def isatty(self) -> bool:
        return True

    @property
    def text(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue())


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Standard error is a terminal, which is looked at after each update."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("trueloop.display.progress_display._REFRESH", 0.0)
    monkeypatch.setattr("trueloop.display.progress_display._COST", float("inf"))
    return Screen()


def test_in_a_file_each_evaluation_is_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    _, history = train(12)
    out, err = capsys.readouterr()
    *epochs, best, end = err.splitlines()
    assert out == ""
    assert "\x1b" not in err
    assert len(epochs) == 12
    for number, (line, record) in enumerate(zip(epochs, history.records, strict=True), 1):
        found = re.fullmatch(rf"epoch {number:>2}/12  train loss (\S+)  val loss (\S+)", line)
        assert found, line
        assert float(found[1]) == pytest.approx(record["train_loss"], rel=1e-3)
        assert float(found[2]) == pytest.approx(record["val_loss"], rel=1e-3)
    assert best.startswith("best val loss ")
    assert best.endswith(f" at epoch {history.best_epoch + 1}")
    assert re.fullmatch(r"finished after 72 updates, [\d.]+ s", end)


def test_without_data_to_evaluate_on_each_epoch_is_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    train(2, val=False)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines[:2]] == ["epoch 1/2", "epoch 2/2"]
    assert all("train loss" in line for line in lines[:2])


def test_evaluations_between_epochs_are_named_by_their_update(
    capsys: pytest.CaptureFixture[str],
) -> None:
    train(updates=10, eval_every="4 updates")
    lines = capsys.readouterr().err.splitlines()
    places = [line.split("  train")[0] for line in lines[:3]]
    assert places == ["update  4/10", "update  8/10", "update 10/10"]


def test_a_line_of_the_log_names_its_update_once(capsys: pytest.CaptureFixture[str]) -> None:
    train(1, val=False, log_every="2 updates")
    lines = [line.split("  ") for line in capsys.readouterr().err.splitlines()[:3]]
    assert [line[:2] for line in lines] == [["epoch 1/1", f"update {n}"] for n in (2, 4, 6)]
    assert not any(fact.startswith("update") for line in lines for fact in line[2:])


def test_of_many_short_evaluations_some_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    train(updates=400, eval_every="1 updates")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) < 60
    assert lines[0].startswith("update   1/400")
    assert lines[-3].startswith("update 400/400")


def test_progress_false_shows_nothing(capsys: pytest.CaptureFixture[str], terminal: Screen) -> None:
    train(progress=False, stderr=terminal)
    assert terminal.getvalue() == ""
    assert capsys.readouterr().out == ""


def test_progress_is_true_or_false() -> None:
    with pytest.raises(ConfigError, match="progress='no' is neither True nor False: write"):
        train(progress="no")


def test_what_is_shown_changes_nothing(terminal: Screen) -> None:
    """Weights, records and all generators are those of a run in the dark, and the weights those of
    the loop by hand."""

    def run(**options: Any) -> tuple[Any, ...]:
        random.seed(5)
        seen: list[Any] = []
        model, history = train(3, sinks=[seen.append], stderr=terminal, **options)
        records = [
            (r.epoch, r.batch, r.update, float(r.loss), r.samples, r.updated)
            if isinstance(r, StepRecord)
            else (r.scores, r.samples, r.epoch, r.update)
            for r in seen
        ]
        draws = random.random(), torch.rand(1).item()
        return model.state_dict(), records, history.updates, draws

    shown, dark = run(), run(progress=False)
    assert "samples/s" in terminal.text
    assert same(shown[0], dark[0])
    assert shown[1:] == dark[1:]

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    feed = trueloop.Feed(data(), 16, shuffle=True, seed=3)
    for epoch in range(3):
        for x, y in feed.epoch(epoch):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    assert same(shown[0], model.state_dict())


def test_a_terminal_is_left_as_it_was(terminal: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    """Also by a run that fails; and what the program prints or logs goes above the live line."""
    logger = logging.getLogger("of the program")
    handler = logging.StreamHandler(terminal)
    logger.addHandler(handler)
    stdout = sys.stdout
    seen = []

    def sink(record: Any) -> None:
        if isinstance(record, StepRecord) and record.update == 4:
            seen.append(handler.stream is not terminal)
            logger.warning("the program's own words")
            print("to a file")
        if isinstance(record, EvalRecord):
            raise OSError("the program's own failure")

    try:
        with pytest.raises(OSError, match="the program's own failure"):
            train(sinks=[sink], stderr=terminal)
    finally:
        logger.removeHandler(handler)
    assert seen == [True]
    assert handler.stream is terminal
    assert sys.stdout is stdout
    text = terminal.getvalue()
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l") >= 0, "the cursor is shown again"
    assert "the program's own words\n" in terminal.text
    assert capsys.readouterr().out == "to a file\n", "standard output is not a terminal here"


def test_within_another_live_display_it_prints_lines(terminal: Screen) -> None:
    def nested(record: Any) -> None:
        if isinstance(record, StepRecord) and record.update == 4:
            train(1, val=False)

    train(1, val=False, sinks=[nested], stderr=terminal)
    text = terminal.text
    assert text.count("epoch 1/1  train loss") == 2
    assert text.count("finished after 6 updates") == 2


def test_a_dumb_terminal_gets_lines(terminal: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    train(stderr=terminal)
    assert "\x1b" not in terminal.getvalue()
    assert terminal.getvalue().count("epoch") == 3


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [None, closed(), Broken()], ids=["none", "closed", "broken"])
def test_a_stream_that_is_closed_ends_no_training(
    stream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    _, history = train(2)
    assert history.status == "finished"
    assert history.updates == 12


def test_a_terminal_that_goes_away_ends_no_training(
    terminal: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = terminal.write

    def until_hung_up(text: str) -> int:
        if len(terminal.getvalue()) > 500:
            raise OSError(5, "Input/output error")
        return write(text)

    monkeypatch.setattr(terminal, "write", until_hung_up)
    before = sys.stdout, sys.stderr
    _, history = train(2, stderr=terminal)
    assert history.updates == 12
    assert (sys.stdout, sys.stderr) == before


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_signs_that_an_encoding_lacks_become_words(encoding: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    screens.Lines(stream).line("val R² −0.5000  norm ∞  – ★")
    assert raw.getvalue().decode(encoding).replace("²", "2").replace("–", "-") == (
        "val R2 -0.5000  norm inf  - ?\n"
    )


def test_an_interrupted_run_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def press(record: Any) -> None:
        if isinstance(record, StepRecord) and record.update == 4:
            import signal

            signal.raise_signal(signal.SIGINT)

    train(sinks=[press])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert re.fullmatch(r"interrupted after 4 updates, [\d.]+ s", lines[0])
    train(sinks=[press], checkpoints=trueloop.Checkpoints(tmp_path))
    how = f"; resume with fit(..., resume_from=trueloop.load_checkpoint('{tmp_path}'))"
    assert capsys.readouterr().err.splitlines()[-1].endswith(how)


class Output:
    """One output of a notebook's cell."""

    def __init__(self, shown: dict[str, str]) -> None:
        self.history = [shown["text/plain"]]

    def update(self, shown: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.history.append(shown["text/plain"])


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch, terminal: Screen) -> list[Output]:
    """What a cell shows; tests/test_example_notebooks.py does it with a real kernel."""
    outputs: list[Output] = []

    def display(shown: dict[str, str], *, raw: bool, display_id: bool) -> Output:
        assert raw
        assert display_id
        outputs.append(Output(shown))
        return outputs[-1]

    shell = SimpleNamespace(kernel=object())
    ipython = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))  # type: ignore[arg-type]
    return outputs


def test_in_a_notebook_one_output_is_replaced(cell: list[Output], terminal: Screen) -> None:
    train(2, stderr=terminal)
    (output,) = cell
    assert terminal.getvalue() == ""
    assert "samples/s" in "".join(output.history)
    assert re.match(r"epoch 1/2  ━+─+  loss 1\.\d+", output.history[0])
    epochs, first, best, end = (output.history[-1].splitlines()[k] for k in (1, 0, 2, 3))
    assert first.startswith("epoch 1/2  train loss")
    assert epochs.startswith("epoch 2/2  train loss")
    assert best.startswith("best val loss")
    assert end.startswith("finished after 12 updates")


def test_an_output_of_a_notebook_stays_small(cell: list[Output]) -> None:
    train(updates=250, log_every="1 updates", val=False, eval_every="250 updates")
    assert len(cell) == 2
    lines = [output.history[-1].splitlines() for output in cell]
    assert len(lines[0]) == 200
    assert sum(line.startswith("update") for one in lines for line in one) >= 250


def _main_rank_speaks() -> str:
    sys.stderr = io.StringIO()
    try:
        train(1)
        return sys.stderr.getvalue()
    finally:
        sys.stderr = sys.__stderr__


def test_of_many_ranks_one_shows_it() -> None:
    first, second = on_ranks(2, _main_rank_speaks)
    assert "epoch 1/1  train loss" in first
    assert second == ""


class OnDevice(torch.Tensor):
    """A tensor that says it is on a CUDA device, and that must not be read there."""

    is_cuda = True  # type: ignore[assignment]

    def __float__(self) -> float:
        raise AssertionError("the device would be waited for")

    item = __float__  # type: ignore[assignment]


def test_what_is_on_a_device_is_shown_once_it_has_arrived(
    terminal: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trueloop.display import ProgressDisplay
    from trueloop.step.deferred_reads import DeferredReads

    asked: list[int] = []

    def send(self: Any, value: torch.Tensor, about: Any) -> None:
        self.sent.append((value.as_subclass(torch.Tensor), None, about))

    def is_due(self: Any, oldest: Any) -> bool:
        asked.append(1)
        return len(asked) % 3 == 0  # two updates after it was sent

    monkeypatch.setattr(DeferredReads, "send", send)
    monkeypatch.setattr(DeferredReads, "_is_due", is_due)
    stream = io.StringIO()
    with redirect_stderr(stream):
        display = ProgressDisplay(epochs=1, batches=9, screen=screens.screen_of_fit())
    with display:
        for batch in range(9):
            loss = torch.tensor(float(batch)).as_subclass(OnDevice)
            parts = {"kl": torch.tensor(0.5).as_subclass(OnDevice)}
            record = StepRecord(0, batch, batch + 1, loss, loss, 0.1, 8, True, parts=parts)
            display(record)
            if batch % 4 == 0:
                display.line(record, 1)
    losses = re.findall(r"update (\d)  loss (\S+) .*norm (\S+) .*kl 0\.5000", stream.getvalue())
    assert losses == [("1", "0", "0"), ("5", "4.000", "4.000"), ("9", "8.000", "8.000")]


needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@needs_cuda
def test_on_cuda_the_display_waits_for_nothing(terminal: Screen) -> None:
    from trueloop.display import ProgressDisplay

    with redirect_stderr(terminal):
        screen = screens.screen_of_fit()
    display = ProgressDisplay(epochs=1, batches=400, screen=screen)
    weight = torch.ones(1024, 1024, device="cuda")
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for batch in range(400):
            loss = (weight @ weight).mean() * 0 + batch
            display(
                StepRecord(
                    0, batch, batch + 1, loss, 2 * loss, 0.1, 8, True, parts={"kl": 3 * loss}
                )
            )
    finally:
        torch.cuda.set_sync_debug_mode("default")
    display.line(StepRecord(0, 399, 400, loss, 2 * loss, 0.1, 8, True), 400)
    display.close()
    text = terminal.text
    assert re.search(r"loss 399\.0  .*norm 798\.0", text.splitlines()[-1])
    assert "kl" in text
