"""`trueloop verify-resume`: what resumes exactly passes; what does not is caught, and why."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import warm_python
from documents import is_shown, shown
from trueloop.cli._compare_runs import divergence, state_differences
from trueloop.cli._segments import MicroBatch, digest
from trueloop.cli.verify_resume import choose_stop
from trueloop.errors import NonFiniteError

Command = Callable[..., Any]

TASKS = '''
"""Tasks of which one resumes exactly, and each other one has a fault of its own."""

import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

import trueloop
from trueloop.tasks import Recipe, Splits

CALLS = {"samples": 0}


def target(x):
    return (2 * x).sum(-1)


class Samples:
    """48 samples with noise that depends on the sample and the epoch alone."""

    def __len__(self):
        return 48

    def noise(self, index):
        return torch.rand(3)

    def __getitem__(self, index):
        x = torch.full((3,), index / 48) + self.noise(index)
        return x, target(x)


class OwnGenerator(Samples):
    def __init__(self):
        self.generator = np.random.default_rng(0)

    def noise(self, index):
        return torch.from_numpy(self.generator.random(3, dtype=np.float32))


class OfTheModule(Samples):
    def noise(self, index):
        CALLS["samples"] += 1
        return torch.full((3,), float(CALLS["samples"]))


class Unseeded(Samples):
    def noise(self, index):
        return torch.tensor(list(os.urandom(3))) / 256


class Stream(IterableDataset):
    """48 samples, the same ones whenever they are read."""

    def __iter__(self):
        return iter([Samples()[k] for k in range(48)])


class GrowingStream(Stream):
    """Goes on where the last reader left it."""

    read = 0

    def __iter__(self):
        for _ in range(48):
            self.read += 1
            x = torch.full((3,), self.read / 48)
            yield x, target(x)


class OwnState(GrowingStream):
    """Goes on where the last reader left it, and says where that is."""

    def state_dict(self):
        return {"read": self.read}

    def load_state_dict(self, state):
        self.read = state["read"]

    def __iter__(self):
        while True:
            self.read += 1
            x = torch.full((3,), self.read / 48) + 0.1 * torch.rand(3)
            yield x, target(x)
            if self.read % 48 == 0:
                return


class Clean(trueloop.Task):
    """Resumes exactly: dropout, random samples, a schedule."""

    kind = "regression"
    recipe = Recipe(epochs=4, batch_size=8, lr=0.02)
    threads = 1

    def training(self):
        return Samples()

    def validation(self):
        x = torch.rand(20, 3, generator=torch.Generator().manual_seed(self.seed))
        return x, target(x)

    def splits(self):
        return Splits(train=self.training(), val=self.validation())

    def model(self):
        return nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.2), nn.Linear(8, 1), nn.Flatten(0))


class DataState(Clean):
    def training(self):
        return OwnGenerator()


class ModuleState(Clean):
    def training(self):
        return OfTheModule()


class UnseededData(Clean):
    def training(self):
        return Unseeded()


class CleanLoader(Clean):
    def training(self):
        return DataLoader(Samples(), 8, shuffle=True)


class CleanStream(Clean):
    def training(self):
        return Stream()


class StreamState(Clean):
    def training(self):
        return GrowingStream()


class StreamOwnState(Clean):
    def training(self):
        return OwnState()


class LoaderOwnState(Clean):
    def training(self):
        return DataLoader(OwnState(), 8)


class ValidationState(Clean):
    def validation(self):
        return OwnGenerator()


class AugmentState(Clean):
    def splits(self):
        generator = torch.Generator().manual_seed(0)

        def augment(batch, draws):
            return batch[0] + torch.rand(batch[0].shape, generator=generator), batch[1]

        x = torch.rand(48, 3)
        return Splits(train=(x, target(x)), val=self.validation(), augment=augment)


class Noisy(nn.Module):
    def __init__(self, generator):
        super().__init__()
        self.inner, self.generator = nn.Linear(3, 1), generator

    def forward(self, x):
        noise = torch.rand(x.shape, generator=self.generator) if self.training else 0
        return self.inner(x + noise).flatten()


class ModelState(Clean):
    def model(self):
        return Noisy(torch.Generator().manual_seed(0))


class Counted(Clean):
    """The loss grows with the number of batches that it has seen."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.counter = {"batches": 0}

    def loss_fn(self):
        plain = super().loss_fn()

        def loss_fn(model, batch):
            output = plain(model, batch)
            if torch.is_grad_enabled():
                self.counter["batches"] += 1
                output.loss = output.loss * (1 + self.counter["batches"] / 10)
            return output

        return loss_fn


class CountedAndKept(Counted):
    def resume_state(self):
        return {"counter": self.counter}


class UnseededModel(Clean):
    def model(self):
        generator = torch.Generator()
        generator.seed()
        return Noisy(generator)


class Broken(Clean):
    def model(self):
        raise ZeroDivisionError("planted")


'''


@pytest.fixture
def verify(command: Command) -> Command:
    """Runs `trueloop verify-resume` on one of the tasks above."""
    Path("tasks.py").write_text(TASKS)

    def run(task: str, *words: object) -> Any:
        return command("verify-resume", f"tasks.py:{task}", *words)

    return run


def test_a_task_that_resumes_exactly(verify: Command) -> None:
    done = verify("Clean", "--accumulate", "4", "--schedule", "plateau", "--patience", "3")
    assert (done.status, done.err) == (0, "")
    straight, stopped, resumed, same, never = done.out.splitlines()
    assert straight == "straight: 12 batches, 4 updates"  # two epochs: the default
    place = stopped.removeprefix("stopped after ")
    assert "inside a window)" in place
    assert same.startswith(f"the same run: stopped after {place} and resumed")
    for part in ("tensors of weights", "optimizer", "schedule", "random generators", "6 lines"):
        assert part in never
    left = 12 - sum(int(word) for word in resumed.split() if word.isdigit())
    epoch, batch = (int(place.split(f"{word} ")[1].split()[0]) for word in ("epoch", "batch"))
    assert (epoch - 1) * 6 + batch + 1 == left


@pytest.mark.parametrize("task", ["CleanStream", "CleanLoader"])
def test_other_data_that_resumes_exactly(verify: Command, task: str) -> None:
    done = verify(task, "--updates=7", "--precision=fp16", "--schedule=none")
    assert done.status == 0
    assert "loss scaler" in done.out
    assert done.out.splitlines()[0].endswith(" batches, 7 updates")  # the scaler skips some


def test_state_of_the_task_that_resume_state_names(verify: Command) -> None:
    done = verify("CountedAndKept", "--updates=8", "--schedule=none")
    assert (done.status, done.err) == (0, ""), done.out
    assert "state of the task's own" in done.out


@pytest.mark.parametrize("task", ["StreamOwnState", "LoaderOwnState"])
def test_an_iterable_with_a_state_of_its_own(verify: Command, task: str) -> None:
    done = verify(task, "--updates=12", "--accumulate=2", "--schedule=none")
    assert (done.status, done.err) == (0, ""), done.out


def test_the_cost_of_a_replay_is_said() -> None:
    Path("tasks.py").write_text(TASKS)
    program = f"import sys\nsys.path.insert(0, {str(Path(warm_python.__file__).parent)!r})\n"
    program += "from warm_python import warm_forkserver\nwarm_forkserver()\n"
    program += "from trueloop.cli import main\n"
    for task in ("CleanStream", "CleanLoader"):
        words = ["verify-resume", f"tasks.py:{task}", "--updates=8", "--schedule=none"]
        program += f"if status := main({words}):\n    sys.exit(status)\n"
    command = [sys.executable, "-c", program]
    done = warm_python.run(command, text=True, **warm_python.with_our_servers())
    assert done.returncode == 0, done.stderr
    for owner in ("Stream", "DataLoader"):
        cost = f"to reach the saved position ({owner} has no state_dict): 0."
        (line,) = (line for line in done.stderr.splitlines() if cost in line)
        assert line.startswith("trueloop: warning: replayed ")


def test_workers_make_no_difference(verify: Command) -> None:
    done = verify("Clean", "--workers=2", "--updates=8")
    assert done.status == 0, done.out


@pytest.mark.parametrize("task", ["DataState", "ModuleState"])
def test_a_data_set_with_hidden_state(verify: Command, task: str) -> None:
    done = verify(task, "--updates", "12")
    assert done.status == 1
    lines = done.out.splitlines()
    assert lines[3].startswith("not the same run: stopped after batch")
    if task == "DataState":
        (text,) = shown("tests/cli/test_verify_resume.py::test_a_data_set_with_hidden_state")
        assert is_shown(text, done.out, part=True, apart=True), done.out
    # The first batch after the stop is the first to differ.
    epoch, batch = (int(lines[1].split(f"{word} ")[1].split()[0]) for word in ("epoch", "batch"))
    place = f"epoch {epoch}, batch {batch + 1}"
    assert lines[4] == f"  differs first at {place}: the batch contains different data"
    assert f"  log: line {7 * (epoch - 1) + batch + 2}, epoch {epoch}" in lines[5]
    assert "\n  weights: 0.weight: 24 of 24 entries differ, by up to " in done.out
    assert lines[-1].startswith("likely cause: the data set has hidden state")


@pytest.mark.parametrize(
    ("task", "cause"),
    [
        ("StreamState", "the iterable data set does not give the same samples"),
        ("AugmentState", "the transform of the training data (Splits.augment) has hidden state"),
        ("ModelState", "the model or the loss has state that is not in the checkpoint"),
        ("Counted", "the model or the loss has state that is not in the checkpoint"),
        ("UnseededData", "not the resume: trained twice without a stop, it is not the same run"),
        ("UnseededModel", "not the resume: trained twice without a stop, it is not the same run"),
    ],
)
def test_other_faults_and_their_causes(verify: Command, task: str, cause: str) -> None:
    done = verify(task, "--updates", "8", "--schedule", "none")
    assert done.status == 1
    assert done.out.splitlines()[-1].startswith(f"likely cause: {cause}")
    where = "the data set" if task == "UnseededData" else "an operation of the model"
    assert (where in done.out) == task.startswith("Unseeded")


def test_validation_data_with_hidden_state(verify: Command) -> None:
    done = verify("ValidationState", "--updates=12", "--schedule=none")
    assert done.status == 1
    assert "differs first at" not in done.out
    assert "  evaluation: line 14, epoch 2, update 12: val_loss" in done.out
    cause = done.out.splitlines()[-1]
    assert cause.startswith(
        "likely cause: the validation data, the loss or a metric has hidden state"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "usage: trueloop verify-resume TASK"),
        (["--updates", "5"], "name the task first"),
        (["spiral", "--updates", "0"], "--updates must be 1 or more, not 0: write --updates 100"),
        (["spiral", "--run", "x"], "unknown option --run"),
        (["spiral", "--epochs", "1", "--updates", "33"], "write --updates 32 or less, or a larger"),
        (["spiral", "--updates", "1"], "no place to stop at: write --updates 2 or more"),
    ],
)
def test_what_it_is_asked(command: Command, words: list[str], said: str) -> None:
    done = command("verify-resume", *words)
    assert said in (done.complaint if words else done.out)
    assert done.status == (2 if words else 0)


def test_a_runs_own_configuration_is_taken(command: Command, line_run: Path, line: str) -> None:
    done = command("verify-resume", line, "--config", line_run / "config.json")
    assert done.status == 0, done.out
    assert done.out.startswith("straight: 8 batches, 8 updates\n")


def test_its_help_names_its_own_options(command: Command) -> None:
    shown = command("verify-resume", "spiral", "--help").out
    assert shown.startswith("usage: trueloop verify-resume spiral")
    assert "--updates" in shown
    assert "--accumulate" in shown
    assert "--max-minutes" not in shown


def test_training_that_fails_is_said_as_ever(verify: Command) -> None:
    said = verify("Clean", "--lr", "1000", "--optimizer", "sgd", "--clip-norm", "null")
    assert said.status == 1
    assert "is not finite (epoch 1, batch 3" in said.complaint
    said = verify("Broken")
    assert said.status == 2
    assert "the training process ended unexpectedly (exit status 1)" in said.complaint


def test_an_error_of_the_training_keeps_its_place_between_processes() -> None:
    error = NonFiniteError("loss is NaN", update=3, epoch=1, batch=2, parameter="0.weight")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), vars(copy)) == (str(error), vars(error))


def entries(count: int, window: int = 1) -> list[MicroBatch]:
    """A trace of epochs of six batches."""
    return [
        MicroBatch(k // 6, k % 6, f"d{k}", "r", 0.5, None, 0.1, k // window, k % window == 0)
        for k in range(count)
    ]


def test_the_stop_lies_inside_an_epoch_and_a_window_if_there_is_one() -> None:
    stops = {choose_stop(entries(13), seed) for seed in range(300)}
    assert stops == {6, 7, 8, 9, 10}  # the second epoch, but not its end
    first = {choose_stop(entries(6), seed) for seed in range(300)}
    assert first == {0, 1, 2, 3, 4}
    windows = {choose_stop(entries(13, window=3), seed) for seed in range(300)}
    assert windows == {7, 8, 10}
    assert choose_stop(entries(7)[5:], 0) == 0  # two epochs of one batch


def test_where_two_traces_part() -> None:
    whole = entries(9)
    assert divergence(whole, entries(9)) is None
    other = [*whole[:4], replace(whole[4], data="x"), *whole[5:]]
    found = divergence(whole, other)
    assert found is not None
    assert (found.index, found.field, found.place) == (4, "data", "epoch 1, batch 4")
    shorter = divergence(whole, whole[:7])
    assert shorter is not None
    assert (shorter.index, shorter.field) == (7, "end")
    nan = [replace(whole[0], loss=float("nan"))]
    assert divergence(nan, [replace(whole[0], loss=float("nan"))]) is None


def test_states_are_compared_bit_by_bit() -> None:
    def state() -> dict[str, Any]:
        return {
            "model": {"w": torch.ones(2, 3), "b": torch.tensor([float("nan"), 0.0])},
            "optimizer": {"state": {0: {"step": torch.tensor(3.0)}}, "groups": [{"lr": 0.1}]},
            "rng": {"torch": torch.zeros(4, dtype=torch.uint8), "random": [3, [1, 2], None]},
        }

    def told(change: Callable[[dict[str, Any]], Any]) -> list[str]:
        other = state()
        change(other)
        return [f"{one.where}: {one.what}" for one in state_differences(state(), other)]

    assert told(lambda other: None) == []
    assert told(lambda other: other["model"]["b"][1:].mul_(-1)) == [
        "weights: b: 1 of 2 entries differ, by up to 0"  # -0.0 is not 0.0; NaN is NaN
    ]
    assert told(lambda other: other["model"]["w"][1].add_(0.5)) == [
        "weights: w: 3 of 6 entries differ, by up to 0.5"
    ]
    assert told(lambda other: other["model"].update(w=torch.ones(3, 2))) == [
        "weights: w: torch.float32 (2, 3) straight, torch.float32 (3, 2) here"
    ]
    assert told(lambda other: other["optimizer"]["groups"][0].update(lr=0.2)) == [
        "optimizer: groups.0.lr: 0.1 straight, 0.2 here"
    ]
    assert told(lambda other: other["optimizer"]["state"].clear()) == [
        "optimizer: state.0: only in one of them"
    ]
    assert told(lambda other: other["rng"]["random"][1].__setitem__(0, 9)) == [
        "random generators: random.1.0: 1 straight, 9 here"
    ]


def test_a_digest_sees_every_byte_and_nothing_else() -> None:
    batch = (torch.arange(6.0).reshape(2, 3), {"a": torch.tensor(1), "b": [1, "x", None]})
    copy = (batch[0].clone(), {"a": torch.tensor(1), "b": [1, "x", None]})
    assert digest(batch) == digest(copy)
    assert digest(torch.arange(6.0)) != digest(torch.arange(6.0).reshape(2, 3))
    assert digest(torch.zeros(2)) != digest(-torch.zeros(2))
    assert digest(torch.zeros(2)) != digest(torch.zeros(2, dtype=torch.int32))
    assert digest([1, 2]) != digest([[1], 2])
    assert digest(torch.zeros(2, dtype=torch.bfloat16)) == digest(
        torch.zeros(2, dtype=torch.bfloat16)
    )

    class Own:
        def __init__(self, value: int) -> None:
            self.value = torch.tensor(value)

    assert digest(Own(1)) == digest(Own(1))
    assert digest(Own(1)) != digest(Own(2))
