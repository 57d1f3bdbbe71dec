"""The digits: scikit-learn's data as images, and a clear word where it is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from trueloop.errors import MissingDependencyError
from trueloop.run import Figures
from trueloop.tasks import load


def test_the_images_are_scikit_learns():
    datasets = pytest.importorskip("sklearn.datasets")
    splits = load("digits")(seed=0).splits()
    images = torch.cat((splits.train[0], splits.val[0]))
    labels = torch.cat((splits.train[1], splits.val[1]))
    pixels, digits = datasets.load_digits(return_X_y=True)
    assert images.shape == (1797, 1, 8, 8)
    assert images.min() == 0
    assert images.max() == 1
    assert torch.bincount(labels).tolist() == [int((digits == k).sum()) for k in range(10)]
    assert images.double().sum().item() == pytest.approx(pixels.sum() / 16)
    share = torch.bincount(splits.val[1]) / torch.bincount(labels)
    assert (share - 0.2).abs().max() < 0.01


def test_the_model_takes_a_batch():
    pytest.importorskip("sklearn")
    task = load("digits")(seed=0)
    splits = task.splits()
    assert task.model()(splits.train[0][:5]).shape == (5, 10)


def test_the_worst_mistakes_are_drawn(tmp_path):
    pytest.importorskip("sklearn")
    task = load("digits")(seed=0)
    splits = task.splits()
    outputs = torch.zeros(len(splits.val[1]), 10)
    outputs[:, 0] = 5.0
    album = Figures(tmp_path)
    task.pictures(task.model(), splits, outputs, splits.val[1], album)
    assert album.entries[0]["file"] == "pictures/mistakes.png"
    assert "24 of" in album.entries[0]["caption"]


def test_without_scikit_learn_it_says_what_to_install(monkeypatch, one_line):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'trueloop\[sklearn\]'") as error:
        load("digits")(seed=0).splits()
    one_line(error)


def test_a_data_file_is_refused(refusal):
    refusal(load("digits")(data=Path("digits.csv")), "leave out --data")
