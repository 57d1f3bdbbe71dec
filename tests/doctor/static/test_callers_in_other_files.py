"""What is found in a function that is read by itself, and what programs that call it show."""

from __future__ import annotations

from pathlib import Path

import pytest

from trueloop.doctor.config import Configs
from trueloop.doctor.static.checking import check
from trueloop.doctor.static.inputs.cache import Cache

TRAINER = """\
import torch
from torch.nn import functional as F

class Trainer:
    def __init__(self, network, optimizer):
        self.network, self.optimizer = network, optimizer

    def fit(self, batches, val_loader, epochs):
        for epoch in range(epochs):
            for x, y in batches:
                self.optimizer.zero_grad()
                loss = F.mse_loss(self.network(x), y)
                loss.backward()
                self.optimizer.step()
            self.validate(val_loader)

    def validate(self, val_loader):
        {mode}
        total = 0.0
        for x, y in val_loader:
            with torch.no_grad():
                total += F.mse_loss(self.network(x), y).item()
        return total
"""
MAIN = """\
import torch
from torch import nn
from trainer import Trainer

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), {layer}, nn.Linear(8, 1))

    def forward(self, x):
        return self.layers(x)

net = Net()
data = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
batches = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
val_loader = torch.utils.data.DataLoader(data, batch_size=8)
trainer = Trainer(net, torch.optim.SGD(net.parameters(), lr=0.1))
trainer.fit(batches, val_loader, 5)
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def found(*paths: str, cache: Cache | None = None) -> list[str]:
    outcome = check(paths or ["."], Configs(), cache=cache)
    return [f"{outcome.name(each.place.path)} {each.code}" for each in outcome.findings]


def write(*, mode: str, layer: str) -> None:
    Path("trainer.py").write_text(TRAINER.format(mode=mode))
    Path("main.py").write_text(MAIN.format(layer=layer))


def test_a_trainer_by_itself_is_reported() -> None:
    write(mode="self.network.eval()", layer="nn.LayerNorm(8)")
    assert found("trainer.py") == ["trainer.py TL201"]


def test_the_program_shows_that_the_network_has_no_modes(tmp_path: Path) -> None:
    write(mode="self.network.eval()", layer="nn.LayerNorm(8)")
    assert found() == []
    cache = Cache(tmp_path / "cache")
    assert found(cache=cache) == found(cache=cache) == []


def test_a_program_with_such_a_network_is_reported() -> None:
    write(mode="self.network.eval()", layer="nn.Dropout(0.2)")
    assert found() == ["trainer.py TL201"]


def test_one_program_of_two_is_enough_for_a_fault() -> None:
    write(mode="self.network.eval()", layer="nn.LayerNorm(8)")
    text = MAIN.format(layer="nn.BatchNorm1d(8)")
    Path("other.py").write_text(text)
    assert found() == ["trainer.py TL201"]


STEPS = """\
def train(net, optimizer, batches, parts, settings):
    for epoch in range(1, settings["epochs"] + 1):
        for x, y in batches:
            if parts["warmup"] is not None and epoch <= settings["warm"]:
                parts["warmup"].step()
            elif epoch > settings["warm"]:
                {steps}
            optimizer.zero_grad()
            ((net(x) - y) ** 2).mean().backward()
            optimizer.step()
"""
SCHEDULES = """\
import sys
import torch
import yaml
from steps import train

def made(optimizer, length):
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, length)
    return scheduler

def main(settings, batches):
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    parts = {"warmup": None, "scheduler": None}
    if settings["warm"]:
        parts["warmup"] = torch.optim.lr_scheduler.LinearLR(optimizer)
    if settings["kind"] is not None:
        parts["scheduler"] = made(optimizer, settings["epochs"] * len(batches))
    train(net, optimizer, batches, parts, settings)

rows = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
main(yaml.safe_load(open(sys.argv[1])), torch.utils.data.DataLoader(rows, shuffle=True))
"""


@pytest.mark.parametrize(
    ("steps", "expected"), [('parts["scheduler"].step()', []), ("pass", ["main.py TL606"])]
)
def test_a_schedule_that_a_table_hands_to_a_different_file(steps: str, expected: list[str]) -> None:
    Path("steps.py").write_text(STEPS.format(steps=steps))
    Path("main.py").write_text(SCHEDULES)
    assert [each for each in found() if each.endswith("TL606")] == expected


GUIDE = """\
from torch import nn

class Guide(nn.Module):
    def __init__(self, names):
        super().__init__()
        self.judges = []
        for name in names:
            self.judges.append(nn.Linear(4, 1))

    def forward(self, x):
        return sum(judge(x) for judge in self.judges)
"""
SAMPLER = """\
import torch
from guide import Guide

names = "old round".split()
guide = Guide(names)
for i, name in enumerate(names):
    {what}
guide.to("cuda")
x = torch.randn(8, 4)
for step in range(20):
    (slope,) = torch.autograd.grad(guide(x.requires_grad_()).sum(), x)
    x = (x + slope).detach()
"""


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ('guide.judges[i].load_state_dict(torch.load(f"{name}.pt")["weights"])', []),
        ('guide.judges[i].to("cuda")', ["guide.py TL303"]),
    ],
    ids=["loaded", "moved"],
)
def test_layers_that_a_program_loads_one_by_one_only_predict(
    what: str, expected: list[str]
) -> None:
    Path("guide.py").write_text(GUIDE)
    Path("sample.py").write_text(SAMPLER.format(what=what))
    assert found() == expected


TUNER = """\
import torch
from guide import Guide

guide = Guide(torch.load("names.pt"))
optimizer = torch.optim.Adam({given}, lr=1e-3)
for x, y in torch.load("batches.pt"):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(guide(x), y).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            '[{"params": guide.judges[0].parameters()}, {"params": guide.judges[1].parameters()}]',
            [],
        ),
        ("[each for judge in guide.judges for each in judge.parameters()]", []),
        ("guide.parameters()", ["guide.py TL303"]),
    ],
)
def test_layers_that_a_program_hands_to_its_optimizer_are_trained(
    given: str, expected: list[str]
) -> None:
    Path("guide.py").write_text(GUIDE)
    Path("tune.py").write_text(TUNER.format(given=given))
    assert found("guide.py", "tune.py") == expected


PREPARES = """\
import os

if os.environ.get("SLOW"):
    print("slow")


def prepare(net):
    net.eval()
"""
TRAINS_BY_AN_OPTION = """\
import argparse

import torch
from torch import nn
from prepares import prepare

parser = argparse.ArgumentParser()
parser.add_argument("--do_train", action="store_true")
parser.add_argument("--quick", action="store_true")
args = parser.parse_args()
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
if args.do_train:
    if args.quick:
        prepare(net)
    for x, y in torch.load("x.pt"):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
"""


def test_a_file_may_be_read_first_where_a_branch_is_looked_at() -> None:
    Path("prepares.py").write_text(PREPARES)
    Path("main.py").write_text(TRAINS_BY_AN_OPTION)
    outcome = check(["main.py"], Configs())
    assert outcome.problems == []


FACTORY = """\
import torch

def prepare(net):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2)
"""
USER = """\
import argparse
import torch
from factory import prepare

parser = argparse.ArgumentParser()
parser.add_argument("--decay", action="store_true")
args = parser.parse_args()
net = torch.nn.Linear(3, 1)
optimizer, schedule = prepare(net)
for epoch in range(9):
    for x in torch.randn(5, 4, 3):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
    {step}
"""


def test_a_schedule_of_a_shared_function_is_reported_where_a_program_gets_it() -> None:
    Path("factory.py").write_text(FACTORY)
    Path("steps.py").write_text(USER.format(step="schedule.step()"))
    Path("steps_with_an_option.py").write_text(USER.format(step="args.decay and schedule.step()"))
    Path("forgets.py").write_text(USER.format(step="print(epoch)"))
    assert found() == ["forgets.py TL606"]


IMPORTS = """\
import torch
{imported}

net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(20, 4, 3):
    net(x).square().mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("rows", "imported"),
    [
        ("class Rows: pass", "from rows import Columns"),
        ("", "from rows import Rows"),
        ("from torch import nn", "from rows import nn, Rows"),
    ],
)
def test_a_program_that_cannot_begin_is_named_and_not_judged(rows: str, imported: str) -> None:
    Path("rows.py").write_text(rows)
    Path("main.py").write_text(IMPORTS.format(imported=imported))
    outcome = check(["main.py"], Configs())
    assert not outcome.findings
    (unread,) = outcome.unread
    name = imported.split()[-1]
    assert unread.message.endswith(f"the program ends in line 2: `rows.py` has no `{name}`")


@pytest.mark.parametrize(
    ("package", "reader", "importer"),
    [
        ("from .reader import read", "from .rows import Columns", "reader.py"),
        ("from .reader import read\nfrom .rows import Columns", "", "__init__.py"),
        ("from .reader import read", "from data.rows import Rows, Columns", "reader.py"),
        ("from .reader import read\nfrom .rows import Rows", "", ""),
        (
            "from .reader import read",
            "try:\n    from .rows import Columns\nexcept Exception: 0",
            "",
        ),
        ("from .reader import read", "def other():\n    from .rows import Columns", ""),
        ("from .reader import read", "from .missing import Columns", ""),
    ],
)
def test_what_is_imported_may_not_begin_either(package: str, reader: str, importer: str) -> None:
    Path("data").mkdir()
    Path("data/__init__.py").write_text(package)
    Path("data/reader.py").write_text(f"{reader}\ndef read(): pass\n")
    Path("data/rows.py").write_text("class Rows: pass\n")
    Path("main.py").write_text(IMPORTS.format(imported="from data import read"))
    outcome = check(["main.py"], Configs())
    ends = f"line 2: `rows.py` has no `Columns`, which `{importer}` imports"
    assert [each.message.partition(" ends in ")[2] for each in outcome.unread] == (
        [ends] if importer else []
    )
    assert [each.code for each in outcome.findings] == ([] if importer else ["TL102"])


@pytest.mark.parametrize(
    ("rows", "imported"),
    [
        ("class Rows: pass", "from rows import Rows"),
        ("class Rows: pass", "try:\n    from rows import Columns\nexcept ImportError:\n    pass"),
        ("from numpy import *", "from rows import array"),
        ("def __getattr__(name): return 1", "from rows import Rows"),
        ("globals()['Rows'] = 1", "from rows import Rows"),
        ("if True:\n    import torch as Rows", "from rows import Rows"),
        ("", "from parts import inner"),
        ("", "from parts.inner import __doc__"),
        ("", "from elsewhere import Rows"),
        ("", "from parts import compiled"),
        ("", "import sys\nsys.path.insert(0, 'lib')\nfrom rows import Rows"),
    ],
)
def test_an_import_that_may_succeed_ends_nothing(rows: str, imported: str) -> None:
    Path("rows.py").write_text(rows)
    Path("parts").mkdir()
    Path("parts/__init__.py").write_text("")
    Path("parts/inner.py").write_text("")
    Path("main.py").write_text(IMPORTS.format(imported=imported))
    outcome = check(["main.py"], Configs())
    assert [each.code for each in outcome.findings] == ["TL102"]
    assert not outcome.unread


def test_a_module_further_up_may_be_meant() -> None:
    Path("rows.py").write_text("class Rows: pass")
    Path("train").mkdir()
    Path("train/rows.py").write_text("")
    Path("train/main.py").write_text(IMPORTS.format(imported="from rows import Rows"))
    outcome = check(["train/main.py"], Configs())
    assert [each.code for each in outcome.findings] == ["TL102"]
