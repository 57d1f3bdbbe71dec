"""What messages repeat of input, and which names they suggest."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from trueloop.errors import ConfigError, DataError, RunError, nearest, nearest_path, shortened


def test_short_messages_stay_as_they_are() -> None:
    for text in ("", "two\nlines: mend it", "x" * 400, "word " * 400):
        assert shortened(text) == text


@pytest.mark.parametrize("argument", ["x" * 5000, "x y " * 1250, "é" * 5000])
def test_a_long_argument_is_not_repeated_whole(argument: str) -> None:
    error = DataError(f"no column {argument!r}: write --target NAME")
    assert len(str(error)) < 2100
    assert "characters)…" in str(error)
    assert str(error).startswith("no column ")
    assert str(error).endswith(": write --target NAME")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_what_is_not_text_is_kept() -> None:
    assert RunError().args == ()
    assert ConfigError("a", 1).args == ("a", 1)


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("prize", ["price", "size"], "did you mean 'price' or 'size'?"),
        ("learning-rate", ["lr", "warmup"], "did you mean 'lr'?"),
        ("learning_rate", ["a", "b"], "known: 'a', 'b'"),
        ("Num Workers", ["workers", "width"], "did you mean 'workers'?"),
        ("bs", ["batch-size", "lr"], "did you mean 'batch-size'?"),
        ("nobody", ["tensorboard", "csv"], "known: 'csv', 'tensorboard'"),
        ("x", [], ""),
        ("zzz", [str(k) for k in range(13)], "known: '0', '1', '10', '11', '12', '2', '3', '4', "
         "'5', '6', '7', '8', …"),
    ],
)  # fmt: skip
def test_nearest(name: str, known: list[str], hint: str) -> None:
    assert nearest(name, known) == hint


def test_the_nearest_of_a_very_long_name_is_found_at_once() -> None:
    assert nearest("x" * 1_000_000, ["lr", "epochs"]) == "known: 'epochs', 'lr'"


def test_a_path_that_does_not_exist_is_answered_with_one_beside_it(tmp_path: Path) -> None:
    (tmp_path / "houses.csv").touch()
    (tmp_path / "dangling.csv").symlink_to("nowhere")
    meant = str(tmp_path / "houses.csv")
    assert nearest_path(tmp_path / "house.csv", "check") == f"did you mean {meant!r}?"
    assert nearest_path(tmp_path / "cars.csv", "check") == "check"
    assert nearest_path(tmp_path / "dangling.csv", "check") == "check"
    assert nearest_path(tmp_path / "gone" / "houses.csv", "check") == "check"
