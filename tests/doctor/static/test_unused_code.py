"""A fault in a class or file that nothing in its project uses is advice: it hurts nobody yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from trueloop.doctor.config import Configs
from trueloop.doctor.static.checking import check

NETWORK = """
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]
        self.more = [nn.Linear(4, 4)]

    def forward(self, x):
        for layer in self.layers + self.more:
            x = layer(x)
        return x
"""


MAIN = "import models\nprint('main')\n"


def severities(folder: Path, files: dict[str, str], given: str = "") -> set[str]:
    """How `check` reports the lists in `Net`, which stands in `models.py`."""
    for name, text in {"models.py": NETWORK, "main.py": MAIN, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = check([str(folder / given)], Configs(), jobs=1).findings
    return {each.severity for each in found if each.code == "TL303"}


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"train.py": "from models import Net\nprint('nothing')\n"},
        {"train.py": "from models import *\n# model = Net()\n"},
        {"other.py": "from models import Net\n__all__ = ['Net']\n"},
        # Used by what is not used itself.
        {"whole.py": "from models import Net\nclass Whole:\n    part = Net()\n"},
        {
            "whole.py": "import models\nclass A:\n    other = 'B'\n    net = models.Net\n"
            "class B(A):\n    pass\n"
        },
        {"setup.py": "from setuptools import setup\nsetup(name='it')\n"},
        {"train.py": "Network = 1\n", "notes.md": "the Nets of before"},
    ],
)
def test_nothing_uses_it(tmp_path: Path, files: dict[str, str]) -> None:
    assert severities(tmp_path, files) == {"advice"}


@pytest.mark.parametrize(
    "files",
    [
        {"train.py": "from models import Net\nmodel = Net()\n"},
        {"train.py": "import models\nmodel = models.Net()\n"},
        {"train.py": "from models import Net as Network\nmodel = Network()\n"},
        {"train.py": "def run():\n    from models import Net as Network\n    return Network()\n"},
        {"train.py": "import models\nmodel = getattr(models, 'Net')()\n"},
        {"config.yaml": "model: models.Net\n"},
        {"train.py": "from models import *\nnet = globals()[open('name').read()]()\n"},
        {"train.py": "import inspect, models\nall = inspect.getmembers(models)\n"},
        {"README.md": "Use `Net` for this.\n"},
        {"run.sh": "python train.py --model Net\n"},
        {"train.ipynb": '{"cells": [{"source": ["Net()"]}]}'},
        {"models.py": NETWORK.replace("class Net", "@register\nclass Net")},
        {"__init__.py": "from .models import Net\n"},
        {"whole.py": "from models import Net\nclass Whole:\n    part = Net\nWhole()\n"},
        {"tests.py": "import models\nclass TestNet:\n    def test(self): models.Net()\n"},
    ],
)
def test_something_uses_it(tmp_path: Path, files: dict[str, str]) -> None:
    assert severities(tmp_path, files) == {"error"}


def test_the_message_says_why_and_one_finding_stands_for_the_class(tmp_path: Path) -> None:
    assert severities(tmp_path, {}) == {"advice"}
    (finding,) = check([str(tmp_path)], Configs(), jobs=1).findings
    assert finding.message.endswith("(Nothing else in this project uses `Net`.)")
    assert (finding.place.line, finding.count) == (8, 2)
    assert [each.place.line for each in finding.related][-1] == 9


def test_what_is_around_a_file_counts(tmp_path: Path) -> None:
    """Nothing is known of a file's users without a folder or a sign of where the project begins."""
    assert severities(tmp_path, {}, "models.py") == {"error"}
    (tmp_path / "pyproject.toml").write_text("")
    assert severities(tmp_path, {}, "models.py") == {"advice"}
    part = {"part/models.py": NETWORK, "models.py": "", "train.py": "from part.models import Net\n"}
    assert severities(tmp_path, part, "part") == {"advice"}
    part["train.py"] += "model = Net()\n"
    assert severities(tmp_path, part, "part") == {"error"}


def test_a_project_with_too_many_files_is_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trueloop.doctor.static.inputs.unused_code._MOST_FILES", 3)
    assert severities(tmp_path, {"a.py": ""}) == {"advice"}
    assert severities(tmp_path, {"c.txt": ""}) == {"error"}


FUNCTION = """
import torch


def validated(model, loader):
    losses = []
    for x, y in loader:
        losses.append(torch.nn.functional.cross_entropy(torch.softmax(model(x), 1), y))
    return losses
"""


def of_function(folder: Path, files: dict[str, str]) -> set[str]:
    """How `check` reports the loss of `scores.py`."""
    for name, text in {"scores.py": FUNCTION, "main.py": "print('main')\n", **files}.items():
        (folder / name).write_text(text)
    found = check([str(folder)], Configs(), jobs=1).findings
    assert all("`scores.py`" in each.message for each in found if each.severity == "advice")
    return {each.severity for each in found if each.code == "TL401"}


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"main.py": "# import scores\nscores = 1\nprint(scores)\n"},
        {"scores.py": f"{FUNCTION}\ndevice = torch.device('cpu')\n"},
        {"scores.py": f"import re\nWORDS = 'a|b'\nword = re.compile(WORDS)\n{FUNCTION}"},
        {"scores.py": f"import os\n\nLEVEL = 3\nif LEVEL:\n    import sys\n{FUNCTION}"},
    ],
)
def test_nothing_imports_the_file(tmp_path: Path, files: dict[str, str]) -> None:
    assert of_function(tmp_path, files) == {"advice"}


@pytest.mark.parametrize(
    "files",
    [
        {"main.py": "import scores\nprint('main')\n"},
        {"main.py": "def main():\n    from scores import *\nmain()\n"},
        {"main.py": "import tools.scores as s\nprint('main')\n"},
        {"main.py": "print(open('scores.py').read())\n"},
        {"main.py": "import importlib\nimportlib.import_module(open('name').read())\n"},
        {"README.md": "See `scores.py`.\n"},
        {"setup.cfg": "console_scripts = score = scores:validated\n"},
        {"main.py": "def main():\n    print('nothing')\n"},  # no program at all
        {"main.py": "def main(:\n"},  # nor one that cannot run
        {"scores.py": f"{FUNCTION}\nvalidated(*open('all'))\n"},
        {"scores.py": f"{FUNCTION}\nlosses = validated(*open('all'))\n"},
        {"scores.py": f"{FUNCTION}\nfrom fits import fit\nnet = Net()\nhistory = fit(net)\n"},
        {"scores.py": f"{FUNCTION}\nif __name__ == '__main__':\n    validated(1, 2)\n"},
    ],
)
def test_somebody_may_run_the_file(tmp_path: Path, files: dict[str, str]) -> None:
    assert of_function(tmp_path, files) == {"error"}
