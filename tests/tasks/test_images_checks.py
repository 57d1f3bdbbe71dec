"""Images that are in two parts of the data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from trueloop.tasks.images import Images
from trueloop.tasks.images.checks import fingerprints, shared_images

IMAGES = np.random.default_rng(0).integers(0, 256, (400, 3, 9, 7), dtype=np.uint8)


def parts(train: np.ndarray, val: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {
        "train": (fingerprints(train), np.arange(len(train))),
        "val": (fingerprints(val), np.arange(len(val))),
    }


@pytest.mark.parametrize("by_folder", [False, True])
def test_different_images(by_folder: bool) -> None:
    assert shared_images(parts(IMAGES[:300], IMAGES[300:]), by_folder=by_folder) == []


def test_a_pixel_makes_the_difference() -> None:
    near = IMAGES[:50].copy()
    near[:, 1, 4, 3] ^= 1
    assert shared_images(parts(IMAGES, near), by_folder=True) == []


def test_shared_images_are_counted() -> None:
    (found,) = shared_images(parts(IMAGES[:300], IMAGES[280:]), by_folder=False)
    assert (found.code, found.severity) == ("TL705", "warning")
    assert "20 of the 120 validation images (16.7%)" in found.message


def test_rows_of_one_array() -> None:
    twice = np.concatenate([IMAGES, IMAGES[:20]])
    rows = np.random.default_rng(1).permutation(len(twice))
    prints = fingerprints(twice)
    divided = {"train": (prints, rows[:300]), "val": (prints, rows[300:])}
    expected = len(set(rows[:300] % 400) & set(rows[300:] % 400))
    (found,) = shared_images(divided, by_folder=False)
    assert f"{expected} of the 120" in found.message


def test_a_few_are_news_only_where_folders_keep_them_apart() -> None:
    few = parts(IMAGES[:300], IMAGES[298:])
    assert shared_images(few, by_folder=False) == []
    (found,) = shared_images(few, by_folder=True)
    assert found.severity == "advice"


def test_images_of_one_colour_do_not_count() -> None:
    plain = np.full((30, 3, 9, 7), 255, dtype=np.uint8)
    assert shared_images(parts(plain, plain), by_folder=True) == []


def test_the_task_says_it(image_folder: Callable[..., Path], tmp_path: Path) -> None:
    root = tmp_path / "set"
    for part in ("train", "test"):
        image_folder(name=f"set/{part}", count=30)
    for label in ("dark", "bright"):
        for name in range(20, 30):  # the two parts are made of the same draws
            (root / "test" / label / f"{name}.png").unlink()
    splits = Images(Images.Options(), data=root, seed=0).splits()
    (found,) = splits.findings
    assert (found.code, found.severity, found.subject) == ("TL705", "warning", "test images")


def test_rare_classes(image_folder: Callable[..., Path]) -> None:
    root = image_folder(count=60)
    for name in range(4, 60):
        (root / "dark" / f"{name}.png").unlink()
    (found,) = Images(Images.Options(), data=root, seed=0).splits().findings
    assert (found.code, found.subject) == ("TL716", "class 'dark'")
