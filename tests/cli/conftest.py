"""The command line driven in process, and one small trained run that many tests look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from trueloop.cli import main

LINE_TASK = '''
"""y = 2x + 1 with a little noise: a regression with a test split, that can read and predict."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

import trueloop
from trueloop.tasks import Recipe, Splits, PredictInput


def points(count, seed):
    x = torch.rand(count, 1, generator=torch.Generator().manual_seed(seed))
    return x, (2 * x + 1)


class Line(trueloop.Task):
    """A straight line."""

    kind = "regression"
    recipe = Recipe(epochs=3, batch_size=16, lr=0.05, monitor="val_mae")

    @dataclass(kw_only=True)
    class Options:
        points: int = 64
        """Points to train on."""
        names: list[str] | None = None
        """Names of nothing in particular."""
        poison: bool = False
        """Put a NaN among the targets."""
        good_batches: int | None = None
        """After how many batches the data turns out to be rotten."""
        broken: bool = False
        """Fail while reading the data."""

    def splits(self):
        if self.options.broken:
            raise trueloop.DataError("the data is broken: mend it")
        x, y = points(self.options.points, 1)
        if self.options.points < 32:
            self.recipe = Recipe(epochs=1, batch_size=2, lr=0.01)
        if self.options.poison:
            y[:] = float("nan")
        return Splits(train=(x, y), val=points(32, 2), test=points(32, 3), facts={"points": len(x)})

    def model(self):
        return nn.Linear(1, 1)

    def loss_fn(self):
        honest, good = super().loss_fn(), self.options.good_batches
        if good is None:
            return honest
        batches = iter(range(good))

        def loss_fn(model, batch):
            if next(batches, None) is None:
                raise trueloop.DataError("this batch is rotten: take it out")
            return honest(model, batch)

        return loss_fn

    def read(self, path):
        return points(int(Path(path).read_text()), 4)

    def unseen(self, path):
        count = int(Path(path).read_text())
        return PredictInput(inputs=points(count, 4)[0], names={"row": list(range(1, count + 1))})
'''


@dataclass
class Outcome:
    """What one command left: exit status, stdout, stderr."""

    status: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one line on stderr; fails the test if it is more or less than one."""
        lines = self.err.splitlines()
        assert len(lines) == 1, f"not one line on stderr: {self.err!r}"
        return lines[0]


Command = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def _workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test runs in an empty directory, on one thread, and leaves torch as it found it."""
    monkeypatch.chdir(tmp_path)
    with _one_thread():
        yield


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(False)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `trueloop WORDS…` in this process."""

    def run(*words: object) -> Outcome:
        capsys.readouterr()
        status = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def line_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the task `Line`."""
    path = tmp_path_factory.mktemp("task") / "line_task.py"
    path.write_text(LINE_TASK)
    return path


@pytest.fixture
def line(line_file: Path) -> str:
    """The task `Line` as the command line names it."""
    return f"{line_file}:Line"


@pytest.fixture(scope="session")
def spiral_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spiral trained for two epochs; tests read it and leave it as it is."""
    path = tmp_path_factory.mktemp("runs") / "spiral"
    with _one_thread():
        assert main(["train", "spiral", "--epochs", "2", "--quiet", "--run", str(path)]) == 0
    return path


@pytest.fixture(scope="session")
def line_run(tmp_path_factory: pytest.TempPathFactory, line_file: Path) -> Path:
    """The line trained for three epochs; tests read it and leave it as it is."""
    path = tmp_path_factory.mktemp("runs") / "line"
    with _one_thread():
        assert main(["train", f"{line_file}:Line", "--quiet", "--run", str(path)]) == 0
    return path
