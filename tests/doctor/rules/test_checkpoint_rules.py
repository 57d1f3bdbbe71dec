"""The rules on checkpoints: whose file it is decides what is said of it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from trueloop.doctor.config import Configs
from trueloop.doctor.model.findings import SAME_HERE, Finding
from trueloop.doctor.report.terminal import as_text
from trueloop.doctor.static import check_text
from trueloop.doctor.static.checking import CheckResult, check

HEAD = """
import argparse, os, sys
from pathlib import Path
import torch
from torch import nn
parser = argparse.ArgumentParser()
parser.add_argument("--weights")
parser.add_argument("--out", default="out")
args = parser.parse_args()
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def found(program: str, path: str = "program.py") -> list[Finding]:
    return check_text(HEAD + textwrap.dedent(program), path, strict=True).findings


def told(program: str, path: str = "program.py") -> list[tuple[str, str]]:
    return [(each.code, each.severity) for each in found(program, path)]


UNSAFE = "weights_only=False"


@pytest.mark.parametrize(
    "program",
    [
        "from huggingface_hub import hf_hub_download\n"
        f"state = torch.load(hf_hub_download('some/model', 'model.bin'), {UNSAFE})",
        "torch.hub.download_url_to_file('https://example.org/m.pt', 'cache/m.pt')\n"
        f"state = torch.load('cache/m.pt', {UNSAFE})",
        "import urllib.request\n"
        "urllib.request.urlretrieve('https://example.org/m.pt', Path(args.out) / 'net.pt')\n"
        f"state = torch.load(Path(args.out) / 'net.pt', {UNSAFE})",
        "import io, requests\n"
        "answer = requests.get('https://example.org/m.pt')\n"
        f"state = torch.load(io.BytesIO(answer.content), {UNSAFE})",
        "import io\nfrom urllib.request import urlopen\n"
        f"state = torch.load(io.BytesIO(urlopen('https://example.org/m.pt').read()), {UNSAFE})",
        "from flask import request\n"
        f"def predict():\n    return torch.load(request.files['weights'], {UNSAFE})\npredict()",
    ],
)
def test_a_file_from_the_network_is_a_warning(program: str) -> None:
    assert told(program) == [("TL802", "warning")]


@pytest.mark.parametrize(
    "program",
    [
        # The user names it, or the program; mostly it is one that a training of theirs wrote.
        f"model.load_state_dict(torch.load(args.weights, {UNSAFE}))",
        f"state = torch.load(sys.argv[1], {UNSAFE})",
        f"state = torch.load(os.environ['WEIGHTS'], {UNSAFE})",
        f"state = torch.load(input('file: '), {UNSAFE})",
        f"with open(args.weights, 'rb') as file:\n    state = torch.load(file, {UNSAFE})",
        f"def load(path):\n    return torch.load(path, {UNSAFE})\nload(Path(args.weights))",
        f"model.load_state_dict(torch.load('pretrained/backbone.pt', {UNSAFE}))",
        f"model.load_state_dict(torch.load(os.path.join(args.out, 'net.pt'), {UNSAFE})['model'])",
        # The program writes the file.
        "torch.save(model.state_dict(), 'best.pt')\n"
        f"model.load_state_dict(torch.load('best.pt', {UNSAFE}))",
        "torch.save(model.state_dict(), os.path.join(args.out, 'best.pt'))\n"
        f"model.load_state_dict(torch.load(f'{{args.out}}/best.pt', {UNSAFE}))",
        "if args.weights:\n"
        f"    model.load_state_dict(torch.load(Path('out') / 'last.pt', {UNSAFE}))\n"
        "torch.save(model.state_dict(), Path('out') / 'last.pt')",
        "for epoch in range(3):\n"
        "    torch.save(model.state_dict(), f'{args.out}/epoch_{epoch}.pt')\n"
        f"model.load_state_dict(torch.load(f'{{args.out}}/epoch_{{2}}.pt', {UNSAFE}))",
        # It writes files with just these keys.
        "import os\nsaved = torch.load(os.environ['RESUME'], weights_only=False)\n"
        "model.load_state_dict(saved['model'])\noptimizer.load_state_dict(saved['optimizer'])\n"
        "torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'n': 1},"
        " args.out)",
        # A second file of that format.
        "saved = torch.load(args.out, weights_only=True)\n"
        "model.load_state_dict(saved['model'])\nprint(saved['n'])\n"
        f"other = torch.load(args.weights, {UNSAFE})['model']\n"
        "torch.save({'model': model.state_dict(), 'n': 1}, args.out)",
        # It is changed and written again.
        f"saved = torch.load(args.weights, {UNSAFE})\n"
        "saved['state'] = {k: v.half() for k, v in saved['state'].items()}\n"
        "torch.save(saved, args.out)",
        # A method that no run of the program reaches writes it.
        "class Trainer:\n"
        "    def save(self):\n"
        "        torch.save(self.net.state_dict(), 'out/last.pt')\n"
        "    def load(self):\n"
        f"        self.net.load_state_dict(torch.load('out/last.pt', {UNSAFE}))",
        # Nothing says where it comes from.
        f"def load(path):\n    return torch.load(path, {UNSAFE})",
        "class Data(torch.utils.data.Dataset):\n"
        "    def __init__(self, root):\n"
        f"        self.items = torch.load(os.path.join(root, 'train.pt'), {UNSAFE})",
        f"items = torch.load(os.path.join(args.out, 'train.pt'), {UNSAFE})",
    ],
)
def test_any_other_file_is_advice(program: str) -> None:
    assert told(program) == [("TL802", "advice")]


SKIPS = "strict=False"


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (
            f"model.load_state_dict(torch.load('last.pt'), {SKIPS})\n"
            "torch.save(model.state_dict(), 'last.pt')",
            [("TL807", "advice")],
        ),
        (
            "path = os.path.join(args.out, 'last.pt')\n"
            f"model.load_state_dict(torch.load(path)['model'], {SKIPS})\n"
            "torch.save({'model': model.state_dict()}, path)",
            [("TL807", "advice")],
        ),
        (
            "saved = torch.load(args.weights)\n"
            f"model.load_state_dict(saved['net'], {SKIPS})\nprint(saved['step'])\n"
            "torch.save({'net': model.state_dict(), 'step': 3}, args.out)",
            [("TL807", "advice")],
        ),
        # Weights that somebody else published: a different head, keys of a loss.
        (f"model.load_state_dict(torch.load('vgg.pth'), {SKIPS})", []),
        (f"model.load_state_dict(torch.load(args.weights)['state_dict'], {SKIPS})", []),
        (
            f"model.load_state_dict(torch.load('vgg.pth'), {SKIPS})\n"
            "torch.save(model.state_dict(), 'tuned.pth')",
            [],
        ),
        (
            "state = torch.hub.load_state_dict_from_url('https://example.org/a.pt')\n"
            f"model.load_state_dict(state, {SKIPS})",
            [],
        ),
        (
            "def average(files):\n"
            "    states = [torch.load(file)['model'] for file in files]\n"
            "    return {k: sum(s[k] for s in states) / len(states) for k in states[0]}\n"
            f"model.load_state_dict(average(['1.pt', '2.pt']), {SKIPS})",
            [],
        ),
    ],
)
def test_keys_of_the_program_s_own_checkpoint_are_all_there(
    program: str, expected: list[tuple[str, str]]
) -> None:
    assert told(program) == expected


@pytest.mark.parametrize(
    "program",
    [
        "torch.save(model.state_dict(), 'weights.pt')\ntorch.save(model, 'whole.pt')",
        "torch.save(model, 'whole.pt')\ntorch.save({'model': model.state_dict()}, 'weights.pt')",
        # Both ways are shown, with two networks.
        "class Net(nn.Module):\n    pass\n"
        "torch.save(Net().state_dict(), 'weights.pt')\ntorch.save(Net(), 'whole.pt')",
    ],
)
def test_a_whole_model_beside_its_state_is_fine(program: str) -> None:
    assert told(program) == []


@pytest.mark.parametrize(
    "program",
    [
        "torch.save(model, 'whole.pt')",
        "torch.save(model, 'whole.pt')\nagain = torch.load('whole.pt')",
        "other = nn.Conv1d(1, 1, 1)\n"
        "torch.save(other.state_dict(), 'weights.pt')\ntorch.save(model, 'whole.pt')",
    ],
)
def test_a_plain_load_refuses_a_whole_model(program: str) -> None:
    (finding,) = found(program)
    assert finding.code == "TL803"
    assert finding.severity == ("warning" if "load" in program else "advice")
    assert "refuses the file since torch 2.6" in finding.message
    assert [each.label for each in finding.related] == ["refuses the file"] * ("load" in program)


LOGGED = """
from torch.nn.parallel import DistributedDataParallel as DDP
inner = model = {made}
{wrapped}
if torch.distributed.get_rank() == 0:
    torch.save(dict(step=1, model={saved}.state_dict()), "logs/state_step000001.pt")
{after}
"""


@pytest.mark.parametrize(
    ("made", "wrapped", "saved", "after", "severity"),
    [
        ("torch.compile(nn.Linear(2, 2))", "model = DDP(model)", "model.module", "", "advice"),
        ("torch.compile(nn.Linear(2, 2))", "", "model", "", "advice"),
        (
            "torch.compile(nn.Linear(2, 2))", "", "model",
            "nn.Linear(2, 2).load_state_dict(torch.load('logs/x.pt')['model'])", "warning",
        ),
        ("nn.Linear(2, 2)", "model = DDP(model)", "model", "", "advice"),
        (
            "nn.Linear(2, 2)", "model = DDP(model)", "model",
            "nn.Linear(2, 2).load_state_dict(torch.load('logs/x.pt')['model'])", "warning",
        ),
        # A different file: the weights that training begins with.
        (
            "nn.Linear(2, 2)",
            "model.load_state_dict(torch.load('backbone.pt'))\nmodel = DDP(model)", "model", "",
            "advice",
        ),
    ],
)  # fmt: skip
def test_who_reads_the_keys_of_a_wrapper(
    made: str, wrapped: str, saved: str, after: str, severity: str
) -> None:
    program = LOGGED.format(made=made, wrapped=wrapped, saved=saved, after=after)
    assert told(program) == [("TL804", severity)]


# ------------------------------------------------------------------------- tests

TESTED = f"""
import torch
from torch import nn

def test_round_trip(tmp_path):
    model = nn.Linear(2, 2)
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.save(model, tmp_path / "model.pt")
    again = torch.load(tmp_path / "model.pt", {UNSAFE})
    losses = []
    for x, y in torch.load("batches.pt"):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
"""
PLAIN = TESTED.replace("def test_round_trip(tmp_path):", "def run(tmp_path):")


@pytest.mark.parametrize(
    ("path", "program", "is_test"),
    [
        ("test_model.py", TESTED, True),
        ("model_test.py", TESTED, True),
        ("conftest.py", PLAIN, True),
        ("tests/helpers.py", PLAIN, True),
        ("tests/unit/deep/helpers.py", PLAIN, True),
        ("model.py", PLAIN, False),
        ("latest/model.py", PLAIN, False),
        # Programs that run by themselves, whatever they are called.
        ("test_model.py", f"{PLAIN}\nrun('.')\n", False),
        ("tests/train.py", f"{PLAIN}\nif __name__ == '__main__':\n    run('.')\n", False),
        ("tests/run.py", f"import unittest\n{PLAIN}\nunittest.main()\n", True),
    ],
)
def test_a_test_is_not_reported_for_hygiene(
    tmp_path: Path, path: str, program: str, is_test: bool
) -> None:
    (tmp_path / "pyproject.toml").touch()
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    codes = {each.code for each in check_text(program, str(file), strict=True).findings}
    assert codes & {"TL204", "TL802", "TL803"} == (
        set() if is_test else {"TL204", "TL802", "TL803"}
    )


def test_a_test_is_reported_for_a_training_that_is_wrong(tmp_path: Path) -> None:
    wrong = TESTED.replace("        optimizer.zero_grad()\n", "")
    file = tmp_path / "test_model.py"
    assert [each.code for each in check_text(wrong, str(file), strict=True).findings] == ["TL102"]


SHAPES = """
import torch
from torch import nn

class Momentum(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        self.target = nn.Linear(4, 4)

    def forward(self, x):
        for p in self.target.parameters():
            p.data.mul_(0.9)
        return self.online(x)

def test_shapes():
    for count in (2, 8):
        model = Momentum()
        with torch.no_grad():
            out = model(torch.rand(count, 4))
        assert out.shape == (count, 4)
"""


@pytest.mark.parametrize(("name", "expected"), [("test_net.py", []), ("net.py", ["TL202"])])
def test_a_test_of_shapes_validates_nothing(tmp_path: Path, name: str, expected: list[str]) -> None:
    found = check_text(SHAPES, str(tmp_path / name), strict=True).findings
    assert [each.code for each in found] == expected


# ------------------------------------------------------------------------- one finding

REPEATED = f"""
import sys
import torch


def load(path):
    train = torch.load(path, {UNSAFE})
    valid = torch.load(path, {UNSAFE})
    return train, valid, torch.load(path, {UNSAFE})


def other(path):
    return torch.load(path, {UNSAFE})


load(sys.argv[1])
other(sys.argv[1])
"""


def checked(tmp_path: Path, program: str) -> CheckResult:
    file = tmp_path / "data.py"
    file.write_text(program)
    return check([str(file)], Configs())


def test_the_same_on_several_lines_of_a_function_is_one_finding(tmp_path: Path) -> None:
    outcome = checked(tmp_path, REPEATED)
    first, second = outcome.findings
    assert (first.place.line, first.count) == (7, 3)
    assert [(each.place.line, each.label) for each in first.related] == [
        (8, SAME_HERE),
        (9, SAME_HERE),
    ]
    assert len(first.remedies) == 3
    assert (second.place.line, second.count) == (13, 1)
    assert "(on 3 lines)" in as_text(outcome)


def test_a_comment_speaks_of_its_own_line(tmp_path: Path) -> None:
    line = f"train = torch.load(path, {UNSAFE})"
    ignored = REPEATED.replace(line, f"{line}  # trueloop: ignore[TL802]")
    assert [(each.place.line, each.count) for each in checked(tmp_path, ignored).findings] == [
        (8, 2),
        (13, 1),
    ]


# ------------------------------------------------------------------------- several files


def told_of(tmp_path: Path, **files: str) -> list[tuple[str, str, str]]:
    """The codes and severities of what is found in each of some files."""
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
    findings = check([str(tmp_path)], Configs()).findings
    return [(Path(each.place.path).stem, each.code, each.severity) for each in findings]


SAVES = """
    import torch
    from torch import nn

    def train(model, name="best.pt"):
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for x, y in torch.utils.data.DataLoader(open("d").read(), shuffle=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        torch.save(model, name)
"""


@pytest.mark.parametrize(
    ("read", "severity"),
    [
        ("pass", "advice"),
        ("print(torch.load('best.pt')(torch.ones(1, 4)))", "warning"),
        ("print(torch.load('best.pt', weights_only=False)(torch.ones(1, 4)))", "advice"),
        ("print(torch.load('other.pt')['x'])", "advice"),
    ],
)
def test_the_program_that_uses_a_file_shows_who_is_hurt(
    tmp_path: Path, read: str, severity: str
) -> None:
    uses = f"""
        import torch
        from a_library import train
        model = torch.nn.Linear(4, 2)
        train(model)
        {read}
    """
    found = told_of(tmp_path, a_library=SAVES, main=uses)
    assert [each for each in found if each[1] == "TL803"] == [("a_library", "TL803", severity)]


@pytest.mark.parametrize("where", ["imported", "called"])
def test_an_imported_file_sets_its_seed_at_once(tmp_path: Path, where: str) -> None:
    seeds = "torch.manual_seed(0)" if where == "imported" else "pass"
    trainer = f"""
        import torch
        {seeds}

        class Trainer:
            def __init__(self, *args, **kwargs):
                {"pass" if where == "imported" else "torch.manual_seed(0)"}
                self.model = kwargs["model"]
                self.optimizer = kwargs["optimizer"]

            def train(self, loader):
                for x, y in loader:
                    self.optimizer.zero_grad()
                    torch.nn.functional.cross_entropy(self.model(x), y).backward()
                    self.optimizer.step()
    """
    run = """
        import torch
        from trainer import Trainer

        def main():
            model = torch.nn.Linear(4, 2)
            optimizer = torch.optim.Adam(model.parameters())
            Trainer(model=model, optimizer=optimizer).train(torch.load("batches.pt"))

        if __name__ == "__main__":
            main()
    """
    found = told_of(tmp_path, trainer=trainer, run=run)
    assert found == ([] if where == "imported" else [("trainer", "TL806", "warning")])
