"""A task of the user's own that lacks something: one line with what to write."""

from __future__ import annotations

import pydoc
from pathlib import Path

import pytest
import torch

from trueloop.errors import ConfigError
from trueloop.tasks import PredictInput, Recipe, Splits, Task, load
from trueloop.tasks.images import Images
from trueloop.tasks.own_class import check_class
from trueloop.tasks.table import Table

FILE = """
from dataclasses import dataclass
import torch, trueloop
from torch import nn
from trueloop.tasks import Recipe, Splits

X = torch.zeros(8, 3)

class Whole(trueloop.Task):
    classes = ["a", "b"]
    def splits(self): return Splits(train=(X, X[:, 0].long()), val=(X, X[:, 0].long()))
    def model(self): return nn.Linear(3, 2)

class Mine(Whole):
    {body}
"""


def made(tmp_path: Path, body: str, base: str = "Whole") -> type[Task]:
    path = tmp_path / "mine.py"
    path.write_text(FILE.replace("{body}", body).replace("Mine(Whole)", f"Mine({base})"))
    cls = load(f"{path}:Mine")
    check_class(cls)
    return cls


OPTIONS = "@dataclass(kw_only=True)\n    class Options:\n        "
LACKING = [
    ("pass", "Mine has no method splits: write `def splits(self): return Splits"),
    ("def splits(self): return None", "Mine has no method model: write `def model(self): return"),
    ("model = nn.Linear(3, 2)", "Mine.model is a Linear, not a method: write `def model(self)"),
    (f"{OPTIONS}width = 5", "option width of Mine.Options has no type: write `width: int = 5`"),
    (f"{OPTIONS}width = None", "has no type: write `width: int | None = None`"),
    (f"{OPTIONS}width: int", "option width of Mine.Options has no default: write `width: int ="),
    (f"{OPTIONS}width: 'Unknown' = 5", "a type in Mine.Options cannot be resolved (name 'Unknown'"),
    ("class Options:\n        width: int = 5", "Mine.Options is not a dataclass: write @dataclass"),
    ("class Options(trueloop.Task.Options):\n        width: int = 5", "not a dataclass itself"),
    ("classes = 3", "Mine.classes = 3 are not names: write classes ="),
    ("recipe = {'epochs': 3}", "Mine.recipe is a dict: write recipe = Recipe(epochs=10)"),
    ("threads = 'two'", "Mine.threads = 'two' is not a number: write threads = 1"),
    ("def __init__(self): pass", "Mine.__init__ does not accept the arguments of a task"),
]


@pytest.mark.parametrize(("body", "match"), LACKING, ids=[body for body, _ in LACKING])
def test_what_a_task_lacks_is_named(tmp_path, one_line, body, match):
    base = "trueloop.Task" if body == "pass" or body.startswith("def splits") else "Whole"
    with pytest.raises(ConfigError) as error:
        made(tmp_path, body, base)
    assert match in one_line(error)


def test_a_whole_task_and_one_with_options_and_an_init_of_its_own_are_taken(tmp_path):
    made(tmp_path, "pass")
    options = f"{OPTIONS}width: int = 5\n        def double(self): return 2 * self.width"
    assert made(tmp_path, options).Options().double() == 10
    made(tmp_path, "def __init__(self, *given, **named): super().__init__(*given, **named)")


def test_a_kind_that_is_not_one_is_named_unless_nobody_asks(tmp_path):
    task = made(tmp_path, "kind = 'classification'; classes = None")()
    for method in (task.loss_fn, task.metrics):
        with pytest.raises(ConfigError, match=r"Mine.kind is 'classification': .*'multiclass'"):
            method()
    silent = made(tmp_path, "classes = None")()
    silent.loss_fn()
    with pytest.raises(ConfigError, match="neither its kind nor its classes: write kind = 'regre"):
        silent.metrics()
    own = "kind = 'gan'\n    def loss_fn(self): return print\n    def metrics(self): return None"
    task = made(tmp_path, own)()
    assert (task.loss_fn(), task.metrics()) == (print, None)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"val": None}, r"Splits\(val=None\) has no data"),
        ({"train": None}, r"Splits\(train=None\) has no data"),
        ({"facts": [1]}, r"Splits\(facts=list\) is not a dict"),
        ({"findings": ["bad"]}, "takes instances of DataFinding"),
    ],
)
def test_splits_that_are_none_are_named(given, match):
    data = (torch.zeros(3, 1), torch.zeros(3))
    with pytest.raises(ConfigError, match=match):
        Splits(**{"train": data, "val": data, **given})


@pytest.mark.parametrize("cls", [Recipe, Splits, PredictInput, Table.Options, Images.Options])
def test_help_explains_every_field(cls):
    shown = pydoc.plain(pydoc.render_doc(cls))
    words = " ".join(shown.split("Fields:")[1].replace("|", " ").split())
    for name in cls.__dataclass_fields__:
        assert f" {name}: " in f" {words}"
    assert {
        Recipe: "Micro-batches per update.",
        Splits: "Held out from every choice; scored once, at the end.",
        PredictInput: "Columns that identify the rows",
        Table.Options: "Text that means a missing number",
        Images.Options: "Shift, mirror or turn training images at random.",
    }[cls] in words
