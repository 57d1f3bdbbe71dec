"""Small tables and image folders, made for each test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from trueloop.errors import UserError
from trueloop.tasks import Task


@pytest.fixture
def table_file(tmp_path: Path) -> Callable[..., Path]:
    """Writes a CSV file of a header and rows."""

    def write(header: str, rows: list[str], name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
        return path

    return write


@pytest.fixture
def image_folder(tmp_path: Path) -> Callable[..., Path]:
    """Writes `count` noisy PNG images of each class below a folder: dark, middling, bright, …"""

    def write(
        name: str = "data",
        classes: tuple[str, ...] = ("dark", "bright"),
        count: int = 12,
        size: tuple[int, int] = (16, 16),
        mode: str = "L",
    ) -> Path:
        rng = np.random.default_rng(0)
        root = tmp_path / name
        for k, label in enumerate(classes):
            (root / label).mkdir(parents=True)
            for n in range(count):
                shape = (size[1], size[0]) if mode == "L" else (size[1], size[0], 3)
                level = 40 + 170 * k // max(1, len(classes) - 1)
                pixels = (level + rng.integers(-30, 30, shape)).clip(0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(root / label / f"{n}.png")
        return root

    return write


@pytest.fixture
def one_line() -> Callable[[pytest.ExceptionInfo[UserError]], str]:
    """Checks that the message of an error for the user is one line, and returns it."""

    def check(error: pytest.ExceptionInfo[UserError]) -> str:
        message = str(error.value)
        assert "\n" not in message
        assert len(message) < 400
        return message

    return check


@pytest.fixture
def refusal(one_line: Callable[..., str]) -> Callable[[Task, str], str]:
    """Lets `splits` refuse its data with one line that matches, and returns it."""

    def check(task: Task, match: str) -> str:
        with pytest.raises(UserError, match=match) as error:
            task.splits()
        return one_line(error)

    return check


@pytest.fixture
def as_arrays() -> Callable[[Any], tuple[np.ndarray, np.ndarray]]:
    """Makes arrays of all inputs and targets of a split of images."""

    def stack(split: Any) -> tuple[np.ndarray, np.ndarray]:
        pairs = [split[k] for k in range(len(split))]
        return np.stack([np.asarray(x) for x, _ in pairs]), np.array([int(y) for _, y in pairs])

    return stack
