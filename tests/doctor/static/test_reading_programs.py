"""Which files are read as programs, and what their options come to."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from trueloop.doctor.model.events import Event, LoopEntered, OptimizerStep
from trueloop.doctor.static import check_text
from trueloop.doctor.static.interpreter.survey import FileSummary

ENGINE = """
import torch
from torch import nn
from torch.utils.data import DataLoader

class Trainer:
    def __init__(self, config):
        self.net = nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.net.parameters(), config["lr"])

    def train(self):
        for x, y in DataLoader(torch.load("a.pt"), shuffle=True):
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.net(x), y).backward()
"""
PROGRAMS = {
    "under main": (
        "from engine import Trainer\n\ndef main():\n    Trainer({'lr': 0.1}).train()\n\n"
        "if __name__ == '__main__':\n    main()\n"
    ),
    "at the top": "import engine\n\ntrainer = engine.Trainer({'lr': 0.1})\ntrainer.train()\n",
    "through a package": "from package import Trainer\n\nTrainer({'lr': 0.1}).train()\n",
    "a class of its own": (
        "from package.hooks import Hooked\n\nclass Mine(Hooked):\n    rate = 0.1\n\n"
        "Mine({'lr': 0.1}).train()\n"
    ),
}


def project(folder: Path) -> None:
    (folder / "engine.py").write_text(ENGINE)
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text(
        "from .core import *\nfrom .names import table\n"
    )
    (folder / "package" / "core.py").write_text(ENGINE)
    (folder / "package" / "names.py").write_text("table = {}\n")
    (folder / "package" / "hooks.py").write_text(
        "from . import Trainer\n\nclass Hooked(Trainer):\n    pass\n"
    )


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_program_that_only_calls_a_trainer_is_read(kind: str, tmp_path: Path) -> None:
    project(tmp_path)
    report = check_text(PROGRAMS[kind], str(tmp_path / "run.py"), strict=True)
    assert [found.code for found in report.findings] == ["TL106"]


@pytest.mark.parametrize(
    "text",
    [
        "from package import table\n\nprint(table)\n",
        "from engine import Trainer\n\ndef make():\n    return Trainer({'lr': 0.1})\n",
        "import json\n\nprint(json.dumps({}))\n",
    ],
)
def test_other_files_without_a_word_of_training_are_not(text: str, tmp_path: Path) -> None:
    project(tmp_path)
    report = check_text(text, str(tmp_path / "run.py"), strict=True)
    assert not report.findings
    assert not report.steps


def test_what_was_looked_at_for_it_counts_as_followed(tmp_path: Path) -> None:
    """With a trainer in it tomorrow, the file says something else."""
    project(tmp_path)
    text = "from package import table\n\nprint(table)\n"
    report = check_text(text, str(tmp_path / "run.py"), strict=True)
    assert str(tmp_path / "package" / "names.py") in report.followed


TRAINING = """
import torch
from torch import nn
from torch.utils.data import DataLoader

class Callbacks:
    def run(self, what):
        print(what)

def train(net, callbacks):
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for epoch in range(9):
        net.train()
        for x, y in mystery(epoch):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            for group in optimizer.param_groups:
                callbacks.run(group["lr"])
            optimizer.step()

def run():
    train(nn.Linear(4, 2), Callbacks())

run()
"""


def kinds(text: str) -> list[str]:
    """The kinds of the loops in `train`, in order, without repetition."""
    found: dict[int, str] = {}

    def listen(event: Event) -> None:
        if isinstance(event, LoopEntered) and event.place.function == "train":
            found[event.place.line] = event.loop.kind

    check_text(text, "/nowhere/a.py", strict=True, listen=listen)
    return [found[line] for line in sorted(found)]


def test_a_method_is_not_the_function_of_its_name() -> None:
    """`callbacks.run()` does not run the program, nor does `net.train()` call `train`."""
    assert kinds(TRAINING) == ["epochs", "batches", "other"]


def test_a_method_of_the_file_is_found_by_its_name() -> None:
    methods = TRAINING.replace("def train(net,", "class Engine:\n  def train(self, net,")
    methods = methods.replace("train(nn.Linear", "Engine().train(nn.Linear")
    found = methods.replace("print(what)", "optimizer.step()")
    seen: list[Event] = []
    check_text(found, "/nowhere/a.py", strict=True, listen=seen.append)
    assert any(isinstance(each, OptimizerStep) for each in seen)


def test_where_nothing_calls_backward_what_clears_is_the_training_loop() -> None:
    assert kinds(TRAINING.replace(".backward()", "")) == ["epochs", "batches", "other"]


RANKS_BY_AN_OPTION = """
import argparse
import torch
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=-1)
args = parser.parse_args()
if args.local_rank != -1:
    torch.distributed.init_process_group("nccl")
data = TensorDataset(torch.randn(64, 4), torch.randint(2, (64,)))
sampler = RandomSampler(data) if args.local_rank == -1 else DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
"""


def test_the_way_that_a_default_leaves_out_is_read_too() -> None:
    found = check_text(RANKS_BY_AN_OPTION, "/nowhere/train.py", strict=True).findings
    assert [(each.code, each.place.line) for each in found] == [("TL704", 17)]


@pytest.mark.parametrize("rows", ["-1", "0", "3 - 5"])
def test_a_slice_of_any_computed_size_is_read(rows: str) -> None:
    text = f"import torch\nx = torch.randn({rows}, 8)\ny = x[:2].mean(0)\ntorch.randn(4)\n"
    assert check_text(text, "a.py", strict=True).findings == []


STAR = """\
from torch import nn, optim
from somewhere import *

net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1), nn.Linear(4, 4))
criterion = nn.MSELoss()
optimizer = optim.SGD(net.parameters(), lr=0.1)

def evaluate(source):
    net.eval()
    total = 0
    with torch.no_grad():
        for x, y in source:
            total += criterion(net(x), y).item()
    return total

def fit(source):
    net.train()
    for x, y in source:
        optimizer.zero_grad()
        criterion(net(x), y).backward()
        optimizer.step()

for epoch in range(10):
    fit(torch.load("a.pt"))
    evaluate(torch.load("b.pt"))
"""


def test_torch_may_come_from_a_file_that_cannot_be_read() -> None:
    assert not check_text(STAR, "a.py", strict=True).findings
    bare = STAR.replace("with torch.no_grad():", "if True:")
    assert [each.code for each in check_text(bare, "a.py").findings] == ["TL203"]


def test_a_gradient_of_nothing_ends_no_run() -> None:
    report = check_text("import torch\n\nloss = torch.autograd.grad()\n", "a.py", strict=True)
    assert "fault of trueloop" not in repr(report)


SETTINGS = """
import argparse
import torch
from torch import nn
from yacs.config import CfgNode

def defaults():
    cfg = CfgNode()
    cfg.model = CfgNode()
    cfg.model.resume = ""
    cfg.test = CfgNode()
    cfg.test.alone = False
    cfg.first, cfg.last = 0, 20
    return cfg

def restored(path, net, optimizer, schedule):
    state = torch.load(path)
    own = net.state_dict()
    own.update({k: v for k, v in state["net"].items() if v.size() == own[k].size()})
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    EXTRA
    return state["epoch"]

class Engine:
    def __init__(self, net, optimizer, schedule):
        self.net, self.optimizer, self.schedule = net, optimizer, schedule

    def run(self, first, last, alone):
        if alone:
            self.test()
            return
        for epoch in range(first, last):
            for _ in range(8):
                x = torch.randn(4, 2)
                self.optimizer.zero_grad()
                (self.net(x) - x).pow(2).mean().backward()
                self.optimizer.step()
            self.schedule.step()

    @torch.no_grad()
    def test(self):
        print(self.net(torch.randn(4, 2)))

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", default="")
    parser.add_argument("--alone", action="store_true")
    args = parser.parse_args()
    cfg = defaults()
    GIVEN
    print("test" if ALONE else "train")
    net = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(net.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    if PATH:
        cfg.first = restored(PATH, net, optimizer, schedule)
    Engine(net, optimizer, schedule).run(cfg.first, cfg.last, ALONE)

main()
"""
MERGED = "cfg.merge_from_file('a.yaml')"
LOADED = 'schedule.load_state_dict(state["schedule"])'


def settings(given: str, path: str, alone: str, extra: str = "pass") -> list[str]:
    text = SETTINGS.replace("GIVEN", given).replace("EXTRA", extra)
    report = check_text(text.replace("PATH", path).replace("ALONE", alone), "a.py", strict=True)
    return [found.code for found in report.findings if found.severity != "advice"]


@pytest.mark.parametrize(
    ("given", "path", "alone"),
    [
        (MERGED, "cfg.model.resume", "cfg.test.alone"),  # a file may give what the defaults do not
        ("cfg.merge_from_list(['model.resume', 'a.pt'])", "cfg.model.resume", "cfg.test.alone"),
        ("pass", "args.resume", "args.alone"),
    ],
)
def test_a_run_resumes_beside_an_option_to_test_alone(given: str, path: str, alone: str) -> None:
    assert settings(given, path, alone) == ["TL801"]
    assert settings(given, path, alone, LOADED) == []


def test_settings_that_nothing_is_merged_into_are_as_they_are_written() -> None:
    assert settings("pass", "cfg.model.resume", "cfg.test.alone") == []


FORGOTTEN = """
def fit(model, loader, val_loader, optimizer, criterion):
    for epoch in range(5):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            total = 0
            for x, y in val_loader:
                total += criterion(model(x), y).item()
        print(total)
"""


def test_torch_may_be_forgotten() -> None:
    assert not check_text(FORGOTTEN, "a.py", strict=True).findings
    bare = FORGOTTEN.replace("with torch.no_grad():", "if True:")
    assert [each.code for each in check_text(bare, "a.py").findings] == ["TL203"]


GLOBALS = """
import torch
from torch import nn

def define():
    global F, Net, measure
    import torch.nn.functional as F
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 3)
        def forward(self, x):
            return F.softmax(self.layer(x), dim=1)
    def measure(scores, y):
        return F.cross_entropy(scores, y)

define()
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in torch.load("batches.pt"):
    optimizer.zero_grad()
    measure(net(x), y).backward()
    optimizer.step()
"""


def test_what_a_function_defines_for_its_file_is_known_there() -> None:
    found = check_text(GLOBALS, "train.py").findings
    assert [(each.code, each.place.line) for each in found] == [("TL401", 15)]


def test_the_default_of_an_option_may_be_a_constant_of_the_file() -> None:
    program = (
        "import argparse\nGAMMA = 0.1\nTWICE = 1\nif GAMMA:\n    TWICE = 2\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--gamma', default=GAMMA)\nparser.add_argument('--n', default=TWICE)\n"
    )
    assert FileSummary(ast.parse(program), program).options == {"gamma": 0.1}
