"""Finding a task: by name, or in a file of the user's own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import warm_python
from trueloop.errors import ConfigError
from trueloop.tasks import READY_MADE, Task, load

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_task" / "task.py"


@pytest.mark.parametrize("name", READY_MADE)
def test_ready_made_tasks_are_tasks_with_a_first_line(name):
    task = load(name)
    assert issubclass(task, Task)
    assert task.__name__.lower() == name
    assert (task.__doc__ or "").splitlines()[0].endswith((".", ")", "on."))


@pytest.fixture
def refused(one_line):
    """Lets `load` refuse a name with one line that matches, and returns it."""

    def check(name: str, match: str) -> str:
        with pytest.raises(ConfigError, match=match) as error:
            load(name)
        return one_line(error)

    return check


def test_an_unknown_name_offers_the_nearest(refused):
    refused("spirl", "did you mean 'spiral'")
    refused("quantum", "FILE.py:CLASS")
    refused("mine.py", "mine.py:CLASS")
    refused("mine.txt:Mine", "FILE.py:CLASS")


def test_the_example_is_a_task_and_learns():
    task = load(f"{EXAMPLE}:Pendulum")(seed=1)
    splits = task.splits()
    again = load(f"{EXAMPLE}:Pendulum")(seed=1).splits()
    assert torch.equal(splits.train[1], again.train[1])
    model, loss_fn = task.model(), task.loss_fn()
    assert model(splits.val[0]).shape == splits.val[1].shape
    before = loss_fn(model, splits.val).loss.item()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(150):
        loss_fn(model, splits.train).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert loss_fn(model, splits.val).loss.item() < 0.3 * before


def test_a_file_may_import_its_neighbour_and_hold_dataclasses(tmp_path):
    (tmp_path / "neighbour_of_mine.py").write_text("WIDTH = 5\n")
    (tmp_path / "task.py").write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "from neighbour_of_mine import WIDTH\n"
        "from trueloop import Task\n"
        "class Mine(Task):\n"
        "    @dataclass(kw_only=True)\n"
        "    class Options:\n"
        "        width: int = WIDTH\n"
    )
    mine = load(f"{tmp_path / 'task.py'}:Mine")
    assert mine().options.width == 5


def test_two_files_of_one_name_stay_apart(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "task.py").write_text(
            f"from trueloop import Task\nclass Mine(Task):\n    place = {folder!r}\n"
        )
    first, second = (load(f"{tmp_path / folder / 'task.py'}:Mine") for folder in ("a", "b"))
    assert (first.place, second.place) == ("a", "b")
    assert first.__module__ != second.__module__


def test_a_missing_file_or_class_or_a_class_that_is_no_task(tmp_path, refused):
    file = tmp_path / "task.py"
    refused(f"{file}:Mine", "no file")
    file.write_text("from trueloop import Task\nclass Mine(Task): pass\nclass Other: pass\n")
    refused(f"{file}:Mime", "did you mean 'Mine'")
    refused(f"{file}:Other", "is not a task: derive it from trueloop.Task")


@pytest.mark.parametrize(
    ("source", "match"),
    [
        ("import nothing_of_the_kind\n", r"line 1: ModuleNotFoundError: .*nothing_of_the_kind"),
        ("x = 1\ny = x +\n", r"line 2: SyntaxError"),
        ("def f():\n    return 1 / 0\nf()\n", r"line 2: ZeroDivisionError"),
        ("raise SystemExit(3)\n", r"line 1: SystemExit: 3"),
        ("raise ValueError('two\\nlines')\n", r"line 1: ValueError: two lines"),
    ],
)
def test_a_file_that_fails_when_imported_is_one_line(tmp_path, source, match, refused):
    (tmp_path / "broken.py").write_text(source)
    message = refused(f"{tmp_path / 'broken.py'}:Mine", match)
    assert "fix the file" in message


def test_finding_a_task_does_not_import_the_others():
    code = (
        "import sys\nfrom trueloop.tasks import load\nload('table'), load('images')\n"
        "print([m for m in ('polars', 'PIL', 'sklearn', 'rich', 'matplotlib') if m in sys.modules])"
    )
    done = warm_python.run([sys.executable, "-c", code], start=warm_python.Bare, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
