"""A training script that imports a large package: what it does not use costs next to nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from trueloop.doctor.static import Report, check_text

TRAIN = """
import torch
from lib import make
from torch.utils.data import DataLoader

model = make()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(9):
    for x, y in DataLoader(torch.load("a.pt"), shuffle=True):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
"""
NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
    def forward(self, x):
        return self.layer(x)
"""
REGISTRY = """
TABLE = {}
MODULES = {}

def register(function):
    name = function.__name__
    TABLE[name] = function
    MODULES.setdefault(function.__module__, []).append(name)
    if name in TABLE and not hasattr(function, "hidden"):
        for part in name.split("_"):
            MODULES[part] = name
    return function
"""


def many(text: str, count: int = 1_000) -> str:
    return "".join(text.replace("#", str(number)) for number in range(count))


LIBRARIES = {
    "registered functions": {
        "lib/__init__.py": "from .registry import TABLE, register\nfrom .net import *\n"
        "def make():\n    return net_3()\n",
        "lib/registry.py": REGISTRY,
        "lib/net.py": f"from .registry import register\n{NET}"
        + many("@register\ndef net_#(**options):\n    return Net()\n"),
    },
    "a table of settings": {
        "lib.py": f"{NET}\ndef entry(url, **more):\n"
        "    return {'url': url, 'mean': (0, 1), **more}\n"
        + many("TABLE_# = {\n" + many("    'net_#': entry('a#', crop=(#, #)),\n", 90) + "}\n", 20)
        + "OTHER = {name: entry(name) for name in TABLE_1}\n"
        "def make():\n    return Net()\n",
    },
    "many files": {
        "lib/__init__.py": many("from .net_# import *\n", 60) + "def make():\n    return Net_7()\n",
    }
    | {
        f"lib/net_{number}.py": NET.replace("Net", f"Net_{number}")
        + many(f"class Block_{number}_#(nn.Module):\n    size = Net_{number}\n", 120)
        for number in range(60)
    },
}


def read(folder: Path, files: dict[str, str], text: str = TRAIN) -> Report:
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    return check_text(text, str(folder / "train.py"), strict=True)


@pytest.mark.parametrize("files", LIBRARIES.values(), ids=LIBRARIES)
def test_a_library_that_defines_much_is_read_as_far_as_it_is_used(
    tmp_path: Path, files: dict[str, str]
) -> None:
    report = read(tmp_path, files)
    assert [(found.code, found.place.line) for found in report.findings] == [("TL102", 12)]
    assert report.gaps.unread_file(str(tmp_path / "train.py")) is None
    assert report.steps < 12_000


RIGHT = TRAIN.replace("        optimizer.step()\n", "        optimizer.step()\n        {}\n")


def test_names_of_a_library_have_the_values_that_its_whole_file_gives_them(tmp_path: Path) -> None:
    clear = "CLEARS and optimizer.zero_grad()"
    text = RIGHT.format(clear).replace("import make", "import make, CLEARS")
    lib = f"{NET}\ndef make():\n    return Net()\n"
    twice = "CLEARS = False\ndef other():\n    return CLEARS\nCLEARS = 1 + SURE\nSURE = other()\n"
    assert not read(tmp_path, {"lib.py": f"{lib}SURE = True\n{twice}"}, text).findings
    branch = "CLEARS = True\nif not make:\n    CLEARS = False\n"
    assert not read(tmp_path, {"lib.py": lib + branch}, text).findings
    listed = "ALL = ['a']\nALL += ['b']\nfirst, CLEARS = ALL[0] == 'b', len(ALL) == 2\n"
    assert not read(tmp_path, {"lib.py": lib + listed}, text).findings
    given = "settings = {}\nsettings['clears'] = True\nCLEARS = settings['clears']\n"
    assert not read(tmp_path, {"lib.py": lib + given}, text).findings


def test_a_registry_finds_what_was_registered(tmp_path: Path) -> None:
    files = {
        "lib.py": f"{REGISTRY}{NET}"
        "@register\ndef frozen():\n    return None\n"
        "@register\ndef net():\n    return Net()\n"
        "def make():\n    return TABLE['net']()\n",
    }
    found = read(tmp_path, files).findings
    assert [each.code for each in found] == ["TL102"]


def test_a_long_registry_is_not_taken_for_a_short_one(tmp_path: Path) -> None:
    """What was not looked at any more may be in the table all the same."""
    files = {
        "lib.py": f"{REGISTRY}{NET}"
        + many("@register\ndef net_#():\n    return Net()\n", 40)
        + "def make():\n    if 'net_39' not in TABLE:\n        raise KeyError\n    return Net()\n",
    }
    assert [each.code for each in read(tmp_path, files).findings] == ["TL102"]


def test_a_function_that_a_decorator_replaces_is_replaced_however_many_there_are(
    tmp_path: Path,
) -> None:
    files = {
        "lib.py": f"{NET}\ndef built(function):\n    def inner():\n        return Net()\n"
        "    return inner\n"
        + many("@built\ndef net_#():\n    return None\n", 40)
        + "make = net_39\n",
    }
    assert [each.code for each in read(tmp_path, files).findings] == ["TL102"]


def test_files_that_import_each_other_are_read(tmp_path: Path) -> None:
    files = {
        "lib/__init__.py": "from .a import *\nfrom .b import *\n",
        "lib/a.py": f"from . import b\n{NET}\nSIZE = b.SIZE + 1\n",
        "lib/b.py": "from . import a\nSIZE = 1\nKIND = a.Net\ndef make():\n    return KIND()\n",
    }
    assert [each.code for each in read(tmp_path, files).findings] == ["TL102"]


SCRIPT = """
import torch
from package.net import build

model = build()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x in torch.load("a.pt"):
    model(x).mean().backward()
    optimizer.step()
"""
BUILD = f"{NET}\ndef build():\n    return Net()\n"


@pytest.mark.parametrize("folder", ["scripts", "scripts/large"])
def test_a_package_beside_the_folder_of_scripts_is_followed(folder: str, tmp_path: Path) -> None:
    """Nothing marks the top of the project: `python -m scripts.train` runs all the same."""
    package = (tmp_path / folder).parent / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "net.py").write_text(BUILD, encoding="utf-8")
    path = tmp_path / folder / "train.py"
    path.parent.mkdir(exist_ok=True)
    report = check_text(SCRIPT, str(path), strict=True)
    assert str(package / "net.py") in {str(Path(each).resolve()) for each in report.followed}


def test_a_folder_of_modules_beside_the_scripts_is_followed(tmp_path: Path) -> None:
    """It has no `__init__.py`, nor has the folder above it, where the program that runs is."""
    (tmp_path / "main.py").write_text("from scripts import train\n", encoding="utf-8")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "net.py").write_text(BUILD, encoding="utf-8")
    (tmp_path / "scripts").mkdir()
    report = check_text(SCRIPT, str(tmp_path / "scripts" / "train.py"), strict=True)
    followed = {str(Path(each).resolve()) for each, digest in report.followed.items() if digest}
    assert followed == {str(tmp_path / "package" / "net.py")}


def test_a_package_further_up_is_not(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "net.py").write_text(BUILD, encoding="utf-8")
    report = check_text(SCRIPT, str(tmp_path / "a" / "b" / "train.py"), strict=True)
    assert not any(report.followed.values())


STREAMS = """
import torch

def documents(paths):
    while True:
        for path in paths:
            for row in open(path):
                yield [row, row]

def batches(paths, size):
    source, waiting = documents(paths), []
    while True:
        for row in range(size):
            position = 0
            while position < size:
                while len(waiting) < 100:
                    waiting.extend(next(source))
                position += len(waiting.pop())
        yield torch.zeros(size, 4)

stream = batches(torch.load("paths"), 64)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(100):
    for micro in range(8):
        x = next(stream)
        (model(x).mean() / 8).backward()
    optimizer.step()
"""


def test_a_generator_in_a_generator_is_gone_through_once(tmp_path: Path) -> None:
    """From the second `next` on, as far as its next value."""
    report = check_text(STREAMS, str(tmp_path / "train.py"), strict=True)
    assert [found.code for found in report.findings] == ["TL102"]
    assert report.steps < 3_000


CONTEXTS = {
    "one": """
import contextlib

@contextlib.contextmanager
def around(x):
    print(x)
    yield x
""",
    "one in another": """
import contextlib

@contextlib.contextmanager
def inner(x):
    yield

@contextlib.contextmanager
def around(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(inner(x))
        yield x
""",
}
WITHIN = """
import torch
from contexts import around

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(100):
    x = torch.randn(8, 4)
    with around(x):
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("contexts", CONTEXTS.values(), ids=CONTEXTS)
def test_a_block_within_a_context_of_a_different_file_is_where_it_is_written(
    tmp_path: Path, contexts: str
) -> None:
    (tmp_path / "contexts.py").write_text(contexts)
    path = str(tmp_path / "train.py")
    found = check_text(WITHIN, path, strict=True).findings
    assert [(each.code, each.place.path, each.place.line) for each in found] == [
        ("TL102", path, 12)
    ]
    clears = WITHIN.replace("        loss.back", "        optimizer.zero_grad()\n        loss.back")
    assert not check_text(clears, path, strict=True).findings


BACKEND = """
import torch.distributed as dist

class Backend:
    def begin(self):
        dist.init_process_group("gloo")

    def _number(self):
        return dist.get_rank()

    def {asks}(self):
        return self._number() == 0
"""
SAVES = """
import torch
from backend import Backend

backend = Backend()
backend.begin()
model = torch.nn.Linear(2, 2)

def save(path):
    if not backend.{asks}():
        return
    torch.save(model.state_dict(), path)

for epoch in range(3):
    save("net.pt")
"""


@pytest.mark.parametrize("asks", ["is_root", "is_root_worker", "is_leader"])
def test_a_method_of_a_different_file_asks_for_the_rank(tmp_path: Path, asks: str) -> None:
    (tmp_path / "backend.py").write_text(BACKEND.format(asks=asks))
    (tmp_path / "main.py").write_text(text := SAVES.format(asks=asks))
    assert check_text(text, str(tmp_path / "main.py"), strict=True).findings == []


NAMED = """
import importlib
import torch

lib = importlib.import_module("lib")
model = torch.nn.Linear(4, 1)
rule = lib.make(model)
for step in range(100):
    model(torch.randn(8, 4)).pow(2).mean().backward()
    rule.step()
"""


def test_a_module_that_is_imported_by_its_name_is_read(tmp_path: Path) -> None:
    make = "import torch\n\ndef make(model):\n    return torch.optim.SGD(model.parameters(), 0.1)\n"
    (tmp_path / "lib.py").write_text(make)
    found = check_text(NAMED, str(tmp_path / "main.py"), strict=True).findings
    assert [each.code for each in found] == ["TL102"]
