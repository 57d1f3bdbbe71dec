"""Which files are read: those given, and what of use lies below folders given."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trueloop.doctor.static.inputs.discovery import find_files
from trueloop.errors import ConfigError


@pytest.fixture(autouse=True)
def _workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def make(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("x = 1\n")


def names(*paths: str) -> list[str]:
    return list(find_files(paths).shown.values())


def test_a_folder_is_walked_by_name_and_shown_as_it_was_given() -> None:
    make("train.py", "nets/b.py", "nets/a.py", "notes.md", "nb.ipynb", "data.csv", "nets/x.pyc")
    assert names(".") == ["nb.ipynb", "notes.md", "train.py", "nets/a.py", "nets/b.py"]
    assert names("nets") == ["nets/a.py", "nets/b.py"]
    assert names(os.path.abspath("nets")) == [os.path.abspath(f"nets/{n}.py") for n in "ab"]


def test_installed_hidden_and_built_files_are_left_out() -> None:
    make(
        ".git/x.py", ".venv/x.py", "env/x.py", "env/pyvenv.cfg", "lib/site-packages/x.py",
        "node_modules/x.py", "build/lib/x.py", "dist/x.py", "__pycache__/x.py", "a.egg-info/x.py",
        "__MACOSX/x.py", "keep/._x.py", "keep/x.py",
    )  # fmt: skip
    assert names(".") == ["keep/x.py"]


def test_a_package_of_ones_own_may_be_called_build() -> None:
    make("build/__init__.py", "build/model.py")
    assert names(".") == ["build/__init__.py", "build/model.py"]


def test_what_is_given_itself_is_read_whatever_it_is_called() -> None:
    make("script", ".venv/x.py", "lib/site-packages/pkg/x.py", "build/x.py")
    assert names("script", "build/x.py") == ["script", "build/x.py"]
    assert names(".venv") == [".venv/x.py"]
    assert names("lib/site-packages") == ["lib/site-packages/pkg/x.py"]


def test_each_file_is_read_once() -> None:
    make("a.py")
    os.symlink("a.py", "b.py")
    assert names("a.py", ".", "./a.py", os.path.abspath("a.py")) == ["a.py"]


def test_links_to_folders_and_circles_of_links_are_not_followed() -> None:
    make("pkg/a.py")
    os.symlink(".", "pkg/again")
    os.symlink("/", "pkg/everything")
    os.symlink("loop.py", "loop.py")
    os.symlink("nowhere.py", "gone.py")
    assert names(".") == ["pkg/a.py"]
    os.symlink("pkg", "given")
    assert names("given") == ["given/a.py"]


@pytest.mark.parametrize("path", ["missing.py", "", "a\0b.py"])
def test_a_path_that_cannot_be_is_the_users_mistake(path: str) -> None:
    with pytest.raises(ConfigError, match="path"):
        find_files([path])


def test_excluded_files_are_left_out_of_folders_but_not_if_they_are_given() -> None:
    make("a.py", "old/b.py")

    def is_excluded(path: str) -> bool:
        return "old" in path.removeprefix(os.getcwd())

    def left(*paths: str, force: bool = False) -> list[str]:
        found = find_files(paths, is_excluded=is_excluded, force_exclude=force)
        return list(found.shown.values())

    assert left(".") == ["a.py"]
    assert left("old/b.py") == ["old/b.py"]
    assert left("old/b.py", force=True) == []


def test_a_folder_that_cannot_be_listed_is_a_problem_of_that_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make("a.py", "locked/b.py")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if path == "locked":
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    wanted = find_files(["."])
    assert list(wanted.shown.values()) == ["a.py"]
    assert [problem[:] for problem in wanted.problems] == [
        ("locked", 0, "cannot be listed (Permission denied)")
    ]
