"""The spiral: points that depend on the seed alone, and frames that show what the model does."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from trueloop.run import Figures
from trueloop.tasks import load
from trueloop.tasks.spiral import ARMS, COLOURS, Spiral, spiral, worth_a_frame


def test_the_points_are_as_announced_and_a_function_of_the_seed():
    torch.manual_seed(0)
    first = Spiral(seed=3).splits()
    np.random.seed(5)
    torch.manual_seed(1)
    again, other = Spiral(seed=3).splits(), Spiral(seed=4).splits()
    assert first.train[0].shape == (2000, 2)
    assert first.val[0].shape == (1000, 2)
    assert first.train[0].dtype == torch.float32
    assert torch.equal(first.train[0], again.train[0])
    assert not torch.equal(first.train[0], other.train[0])
    assert torch.bincount(first.train[1]).tolist() == [667, 667, 666]
    assert not torch.equal(first.train[0][:1000], first.val[0])


def test_a_third_of_a_turn_takes_each_arm_to_the_next():
    points, arms = spiral(3000, np.random.default_rng(0))
    turned = points.double().numpy() @ np.array([[-0.5, 3**0.5 / 2], [-(3**0.5) / 2, -0.5]])
    for arm in range(ARMS):
        here = turned[arms.numpy() == arm]
        there = points[arms == (arm + 1) % ARMS].double().numpy()
        nearest = np.linalg.norm(here[:, None] - there[None], axis=2).min(axis=1)
        assert np.median(nearest) < 0.05


def test_a_data_file_is_refused(refusal):
    refusal(Spiral(data=Path("points.csv")), "leave out --data")


def test_forty_frames_of_a_hundred_epochs_the_last_among_them():
    numbers = [n for n in range(1, 101) if worth_a_frame(n)]
    assert len(numbers) == 40
    assert numbers[:3] == [1, 2, 3]
    assert numbers[-1] == 100


class Halves(nn.Module):
    """Sure of class 0 on the left, of class 2 on the right."""

    def __init__(self):
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(()))

    def forward(self, points):
        x = points[:, 0]
        return torch.stack((-50 * x, torch.full_like(x, -50.0), 50 * x), dim=1)


def test_a_frame_shows_the_model_in_the_colours_of_the_classes(tmp_path):
    task = Spiral(seed=0)
    task.splits()
    frame = np.asarray(task._film.frame(Halves(), "epoch 1"))
    assert frame.shape == (480, 480, 3)
    pale = 255 - 0.62 * (255 - COLOURS)
    # Below the caption and outside the points.
    assert np.abs(frame[470, 8].astype(int) - pale[0]).max() <= 2
    assert np.abs(frame[470, 471].astype(int) - pale[2]).max() <= 2


def test_frames_are_cheap_and_become_a_film(tmp_path):
    torch.set_num_threads(1)
    task = Spiral(seed=0)
    splits = task.splits()
    model, album = task.model().eval(), Figures(tmp_path)
    task.after_epoch(model, 0, album)
    started = time.perf_counter()
    for _ in range(5):
        task._film.frame(model, "epoch 2")
    # 15 ms on an idle machine; the bound leaves room for a busy one.
    assert (time.perf_counter() - started) / 5 < 0.1
    task.after_epoch(model, 1, album)
    outputs = model(splits.val[0]).detach()
    task.pictures(model, splits, outputs, splits.val[1], album)
    assert [entry["file"] for entry in album.entries] == ["pictures/boundary.webp"]
    assert (tmp_path / "pictures" / "boundary.webp").stat().st_size > 1000


def test_the_model_is_the_one_of_the_issue():
    model = load("spiral")(seed=0).model()
    shapes = [tuple(p.shape) for p in model.parameters()]
    assert shapes == [(128, 2), (128,), (128, 128), (128,), (3, 128), (3,)]


def test_state_comes_back():
    task = Spiral(seed=0)
    task.splits()
    other = Spiral(seed=0)
    other.restore(task.state())
    assert other.classes == ["blue", "yellow", "red"]
    assert other.predictions(torch.eye(3) * 9)["prediction"].tolist() == other.classes


@pytest.mark.parametrize("count", [1, 2, 10])
def test_arms_are_as_equal_as_can_be(count):
    _, arms = spiral(count, np.random.default_rng(0))
    counts = torch.bincount(arms, minlength=ARMS)
    assert counts.max() - counts.min() <= 1
