"""What the reader sees of a program: the events of its runs, in order."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from trueloop.doctor.model import events as ev
from trueloop.doctor.static import check_text

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
data = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
loader = DataLoader(data, batch_size=8, shuffle=True)
"""


def runs_of(source: str, path: str = "<text>", head: str = HEAD) -> list[list[ev.Event]]:
    """The events of each run, without the one that ends it."""
    runs: list[list[ev.Event]] = [[]]

    def listen(event: ev.Event) -> None:
        if isinstance(event, ev.Ended):
            runs.append([])
        else:
            runs[-1].append(event)

    check_text(head + textwrap.dedent(source), path, rules=[], listen=listen, strict=True)
    return [run for run in runs if run]


def names(run: Iterable[ev.Event], *kinds: type[ev.Event]) -> list[str]:
    wanted = kinds or (
        ev.ZeroGrad,
        ev.ModelForward,
        ev.Loss,
        ev.Backward,
        ev.OptimizerStep,
        ev.Clip,
        ev.SchedulerStep,
    )
    return [type(event).__name__ for event in run if isinstance(event, wanted)]


def only(run: Iterable[ev.Event], kind: type[Any]) -> list[Any]:
    return [event for event in run if isinstance(event, kind)]


def test_flat_loop() -> None:
    (run,) = runs_of(
        """
        for epoch in range(10):
            for x, y in loader:
                optimizer.zero_grad()
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()
        """
    )
    step = ["ZeroGrad", "ModelForward", "Loss", "Backward", "OptimizerStep"]
    assert names(run) == step * 9  # three turns of three
    backward = only(run, ev.Backward)[0]
    assert backward.loss.is_loss
    assert backward.loss.reduced == "mean"
    assert not backward.loss.divided
    optimizer = only(run, ev.OptimizerStep)[0].optimizer
    assert backward.loss.models
    assert all(optimizer.trains(model) for model in backward.loss.models)
    assert [turn.loop.kind for turn in backward.turns] == ["epochs", "batches"]
    assert backward.turn.loop.turns == 8
    assert backward.turns[0].loop.turns == 10


@pytest.mark.parametrize("window", ["4", "args.accumulate", "16"])
@pytest.mark.parametrize(
    "test", ["(i + 1) % n == 0", "i % n == n - 1", "not (i + 1) % n", "(i + 1) % n == 0 or i == 0"]
)
def test_accumulation_windows_are_gone_through(window: str, test: str) -> None:
    (run, *_) = runs_of(
        f"""
        n = {window}
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y) / n
            loss.backward()
            if {test}:
                optimizer.step()
                optimizer.zero_grad()
        """,
        head=HEAD + "import argparse\nargs = argparse.ArgumentParser().parse_args()\n",
    )
    found = names(run, ev.Backward, ev.OptimizerStep)
    first = [] if "or i" not in test else ["OptimizerStep"]
    assert found == ["Backward", *first, "Backward", "OptimizerStep", "Backward"]
    assert all(event.loss.divided for event in only(run, ev.Backward))
    assert not any(event.guards for event in only(run, ev.OptimizerStep))


@pytest.mark.parametrize("test", ["i + 1 == len(loader)", "i == len(loader) - 1"])
def test_the_last_turn_is_known(test: str) -> None:
    (run,) = runs_of(
        f"""
        for i, (x, y) in enumerate(loader):
            criterion(model(x), y).backward()
            if (i + 1) % 4 == 0 or {test}:
                optimizer.step()
        """
    )
    assert names(run, ev.Backward, ev.OptimizerStep) == [
        "Backward",
        "Backward",
        "OptimizerStep",
        "Backward",
        "OptimizerStep",
    ]


def test_phases_are_run_as_they_stand() -> None:
    (run, *_) = runs_of(
        """
        for epoch in range(5):
            for phase in ["train", "val"]:
                model.train(phase == "train")
                for x, y in loader:
                    with torch.set_grad_enabled(phase == "train"):
                        loss = criterion(model(x), y)
                        if phase == "train":
                            loss.backward()
                            optimizer.step()
        """
    )
    modes = [event.training for event in only(run, ev.ModeSet)]
    assert modes == [True, False] * 3
    assert [event.grad for event in only(run, ev.ModelForward)] == ([True] * 3 + [False] * 3) * 3
    assert len(only(run, ev.Backward)) == 9


def test_options_are_on_in_one_run_and_off_in_another() -> None:
    runs = runs_of(
        """
        def train(args, scaler=None):
            for x, y in loader:
                optimizer.zero_grad()
                loss = criterion(model(x), y)
                loss.backward()
                if args.clip:
                    torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
                optimizer.step()
        train(get_args())
        """
    )
    clips = [len(only(run, ev.Clip)) for run in runs[:2]]
    assert clips == [3, 0]
    assert all(event.guards for event in only(runs[0], ev.Clip))
    assert not any(event.guards for event in only(runs[0], ev.OptimizerStep))


def test_a_run_that_would_repeat_the_first_is_not_made() -> None:
    """`args.warm` is only asked about where `args.distill` is off: to decide it in a run with all
    options changes nothing. It is the one option of a run without any."""
    source = """
        args = get_args()
        if args.distill:
            optimizer.zero_grad()
        {branch}:
            optimizer.step()
        """
    nested = runs_of(source.format(branch="elif args.warm"))
    assert [len(only(run, ev.OptimizerStep)) for run in nested] == [0, 0, 1]
    beside = runs_of(source.format(branch="if not args.warm"))
    assert [len(only(run, ev.OptimizerStep)) for run in beside] == [0, 1]
    equal = runs_of(source.format(branch="if args.size == 3"))
    assert [len(only(run, ev.OptimizerStep)) for run in equal] == [1, 0]
    other = runs_of(source.format(branch="if args.size != 3 and args.size == 2"))
    assert [len(only(run, ev.OptimizerStep)) for run in other][2:] == [1]


def test_options_are_added_to_a_run_without_any() -> None:
    """With all of them on, the library trains; `args.resume` and `args.decay` are of use without it
    alone, and together."""
    runs = runs_of(
        """
        args = get_args()
        if args.resume and not args.engine:
            model.load_state_dict(torch.load(args.resume)["model"])
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            if args.engine:
                engine.backward(loss)
            else:
                loss.backward()
                optimizer.step()
        if args.decay and not args.engine:
            scheduler.step()
        """
    )
    loaded = [len(only(run, ev.StateDictLoaded)) for run in runs]
    ticked = [len(only(run, ev.SchedulerStep)) for run in runs]
    assert list(zip(loaded, ticked, strict=True)) == [(0, 0), (0, 0), (1, 0), (1, 1)]


def test_a_parameter_requires_a_gradient_unless_something_freezes_it() -> None:
    runs = runs_of(
        """
        args = get_args()
        net = torch.nn.Linear(2, 2)
        opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
        for x, y in loader:
            if args.clear:
                opt.zero_grad()
            opt.step()
        """
    )
    for run in runs[:2]:
        steps = only(run, ev.OptimizerStep)
        assert [len(step.optimizer.models) for step in steps] == [1, 1, 1]


def test_a_test_that_ends_a_loop_is_false_before_as_well() -> None:
    runs = runs_of(
        """
        args = get_args()
        while True:
            for x, y in loader:
                optimizer.step()
            if args.report and args.patience <= 0:
                print(args)
            if args.patience <= 0:
                break
        """
    )
    assert [len(only(run, ev.OptimizerStep)) for run in runs[:2]] == [9, 9]


def test_equal_conditions_are_decided_alike() -> None:
    runs = runs_of(
        """
        use_amp = config.amp
        for x, y in loader:
            loss = criterion(model(x), y)
            if use_amp:
                torch.cuda.synchronize()
                optimizer.zero_grad()
            else:
                model.zero_grad()
            loss.backward()
            if not config.amp:
                optimizer.step()
        """
    )
    for run in runs[:2]:
        stepped = bool(only(run, ev.OptimizerStep))
        cleared = {type(event.target) for event in only(run, ev.ZeroGrad)}
        assert cleared == {ev.Model if stepped else ev.Optimizer}


def test_a_branch_that_only_leaves_does_not_hide_the_rest() -> None:
    runs = runs_of(
        """
        def main(args):
            if args.evaluate:
                model.eval()
                return
            for x, y in loader:
                loss = criterion(model(x), y)
                if torch.isnan(loss):
                    optimizer.zero_grad()
                    continue
                loss.backward()
                optimizer.step()
        main(parse())
        """
    )
    assert len(only(runs[0], ev.OptimizerStep)) == 3
    assert any(only(run, ev.ModeSet) for run in runs), "the other branch is reached as well"


def test_methods_closures_and_generators_are_entered() -> None:
    (run, *_) = runs_of(
        """
        def batches():
            for i in range(0, 64, 8):
                yield torch.randn(8, 4), torch.randint(0, 2, (8,))

        class Trainer:
            def __init__(self, net, opt):
                self.net, self.opt = net, opt
                self.callbacks = [lambda: self.opt.zero_grad()]

            def loss(self, x, y):
                return criterion(self.net(x), y)

            def run(self):
                for x, y in batches():
                    def closure():
                        for callback in self.callbacks:
                            callback()
                        loss = self.loss(x, y)
                        loss.backward()
                        return loss
                    self.opt.step(closure)

        Trainer(model, optimizer).run()
        """
    )
    assert names(run)[:5] == ["ZeroGrad", "ModelForward", "Loss", "Backward", "OptimizerStep"]
    assert only(run, ev.OptimizerStep)[0].closure


def test_parameters_of_functions_that_nobody_calls_are_guessed() -> None:
    (run, *_) = runs_of(
        """
        def train_one_epoch(net, train_loader, optim, loss_fn):
            net.train()
            for batch in train_loader:
                optim.zero_grad()
                loss = loss_fn(net(batch["x"]), batch["y"])
                loss.backward()
                optim.step()
        """,
        head="import torch\n",
    )
    seen = names(
        run, ev.ModeSet, ev.ZeroGrad, ev.ModelForward, ev.Loss, ev.Backward, ev.OptimizerStep
    )
    assert seen[:6] == [
        "ModeSet", "ZeroGrad", "ModelForward", "Loss", "Backward", "OptimizerStep",
    ]  # fmt: skip
    assert not only(run, ev.OptimizerStep)[0].optimizer.known


def test_history_of_a_loss() -> None:
    (run,) = runs_of(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 2)
            def forward(self, x):
                return torch.softmax(self.fc(x), dim=-1)
        net = Net()
        for x, y in loader:
            p = net(x).view(-1, 2)
            loss = criterion(p, y)
            kept = loss.detach()
            with torch.no_grad():
                other = criterion(net(x), y)
        """
    )
    loss, other = only(run, ev.Loss)[:2]
    assert loss.input.activation.kind == "softmax"
    assert loss.input.activation.dim == -1
    assert loss.output.graph is True
    assert other.output.graph is False
    assert loss.target.role == "target"


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("total += loss", True),
        ("total = total + loss", True),
        ("losses.append(loss)", True),
        ("total += loss.item()", False),
        ("total += loss.detach()", False),
        ("losses.append(float(loss))", False),
        ("inner = 0; inner += loss", False),
    ],
)
def test_what_is_kept(line: str, kept: bool) -> None:
    (run,) = runs_of(
        f"""
        total, losses = 0, []
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            {line}
        """
    )
    assert bool(only(run, ev.TensorRetained)) is kept


def test_imports_within_a_project_are_followed(tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "__init__.py").write_text("from .loop import train\n")
    (tmp_path / "engine" / "loop.py").write_text(
        textwrap.dedent(
            """
            from .. import settings  # goes too far up: must not matter
            def train(model, loader, optimizer, criterion):
                for x, y in loader:
                    loss = criterion(model(x), y)
                    loss.backward()
                    optimizer.step()
            """
        )
    )
    main = tmp_path / "main.py"
    source = "import engine\nengine.train(model, loader, optimizer, criterion)\n"
    (run, *_) = runs_of(source, str(main))
    steps = only(run, ev.OptimizerStep)
    assert len(steps) == 3
    assert steps[0].optimizer.known
    assert steps[0].place.path.endswith("loop.py")


def test_import_cycles_end(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\nimport b\ndef f(): pass\n")
    (tmp_path / "b.py").write_text("import torch\nfrom a import f\nf()\n")
    assert runs_of("import a\na.f()\n", str(tmp_path / "main.py"))


@pytest.mark.parametrize(
    "source",
    [
        "while True:\n    pass\n",
        "def f():\n    return f()\nf()\n",
        "x = 9 ** 9 ** 9 ** 9\n",
        "y = 'a' * 10 ** 12\n",
        "z = [0] * 10 ** 10\n",
        "def g():\n    yield from g()\nfor _ in g():\n    pass\n",
        "class A(A0):\n    pass\nA()\n",
        "f'{1:{2}}'\n",
        "a, *b = 1, 2, 3\nb[0], b[1:] = 4, [5]\n",
        "match 3:\n    case 3 | 4:\n        pass\n    case [x, *_]:\n        pass\n",
        "async def h():\n    async with a as b:\n        async for c in b:\n            await c\n",
        "lambda *a, **k: (yield)\n",
        "global q\nq = 1\n",
    ],
)
def test_odd_programs_are_gone_through(source: str) -> None:
    """To their end: what comes after them is seen, once a run."""
    runs = runs_of(f"{source}optimizer.zero_grad()\n")
    assert runs
    assert [names(run, ev.ZeroGrad) for run in runs] == [["ZeroGrad"]] * len(runs)
