"""Parameters that nobody updates, graphs that live on: what a look at the running program tells."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest
import torch

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.watcher import Watcher
from trueloop.doctor.model.findings import Finding


def watched(program: str, folder: Path, *, advice: bool = False) -> list[Finding]:
    path = folder / "program.py"
    path.write_text(program, encoding="utf-8")
    user_frames.kind_of.cache_clear()
    watcher = Watcher()
    watcher.start()
    try:
        exec(compile(program, str(path), "exec"), {"__name__": "program", "__file__": str(path)})
    finally:
        watcher.stop()
    assert watcher.hub.errors == []
    found = [each for each in watcher.findings() if each.code[:2] != "TS"]
    return [each for each in found if advice or each.severity != "advice"]


LOOP = """
import torch
from torch import nn
torch.manual_seed(0)
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
{before}
for step in range({updates}):
    {each}
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(head(body(torch.randn(8, 4)).relu()), torch.randn(8, 1))
    loss.backward()
    optimizer.step()
    {after}
"""


def loop(before: str, each: str = "pass", after: str = "pass", updates: int = 12) -> str:
    return LOOP.format(before=before, each=each, after=after, updates=updates)


BODY_ONLY = "optimizer = torch.optim.SGD(body.parameters(), lr=0.1)"
BOTH = "optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)"


def test_a_part_without_an_optimizer(tmp_path: Path) -> None:
    (found,) = watched(loop(BODY_ONLY), tmp_path)
    assert (found.code, found.place.line) == ("TL302", 6)
    assert "`head.weight`, `head.bias` (9 values)" in found.message


def test_an_optimizer_that_comes_later_takes_it_back(tmp_path: Path) -> None:
    late = "second = torch.optim.SGD(head.parameters(), lr=0.1) if step == 8 else None"
    assert watched(loop(BODY_ONLY, each=late), tmp_path) == []


def test_updates_by_hand_are_updates(tmp_path: Path) -> None:
    by_hand = "[p.data.add_(p.grad, alpha=-0.1) for p in head.parameters()]"
    assert watched(loop(BODY_ONLY, after=by_hand), tmp_path) == []


@pytest.mark.parametrize(
    "acquits",
    [
        "head.eval()",
        "head.requires_grad_(False)",
        "head.load_state_dict(nn.Linear(8, 1).state_dict())",
        "head.weight.register_hook(lambda g: g); head.bias.register_hook(lambda g: g)",
    ],
    ids=["eval", "frozen", "read", "hooked"],
)
def test_what_is_meant_is_left_alone(acquits: str, tmp_path: Path) -> None:
    assert watched(loop(f"{acquits}\n{BODY_ONLY}"), tmp_path) == []


@pytest.mark.parametrize(("updates", "severity"), [(12, "advice"), (2500, "warning")])
def test_losses_with_graphs_in_a_list(updates: int, severity: str, tmp_path: Path) -> None:
    program = loop(f"{BOTH}\nlosses = []", after="losses.append(loss)", updates=updates)
    (found,) = watched(program, tmp_path, advice=True)
    assert (found.code, found.place.line, found.severity) == ("TL204", 14, severity)


EPOCHS = """
import torch
from torch import nn
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.utils.data.TensorDataset(torch.randn(80, 4), torch.randn(80, 1))
loader = torch.utils.data.DataLoader(data, 8)
total, losses = 0.0, []
for epoch in range(3):
    {begin}
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward({retain})
        optimizer.step()
        {keep}
"""


@pytest.mark.parametrize(
    ("begin", "keep", "retain", "severity"),
    [
        ("total = 0.0", "total += loss", "", "advice"),
        ("losses = []", "losses.append(loss)", "", "advice"),
        ("pass", "total += loss", "", "warning"),
        ("pass", "losses.append(loss)", "", "warning"),
        ("losses = []", "losses.append(loss)", "retain_graph=True", "error"),
    ],
)
def test_what_is_emptied_after_each_epoch_costs_little(
    begin: str, keep: str, retain: str, severity: str, tmp_path: Path
) -> None:
    """As `check` has it: see `test_what_a_kept_graph_costs`."""
    program = EPOCHS.format(begin=begin, keep=keep, retain=retain)
    (found,) = watched(program, tmp_path, advice=True)
    assert (found.code, found.place.line, found.severity) == ("TL204", 16, severity)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("losses = []", "losses.append(loss.detach())"),
        ("losses = []", "losses[:] = [loss]"),
        ("from collections import deque; losses = deque(maxlen=6)", "losses.append(loss)"),
    ],
    ids=["detached", "replaced", "bounded"],
)
def test_what_does_not_grow_is_left_alone(before: str, after: str, tmp_path: Path) -> None:
    assert watched(loop(f"{BOTH}\n{before}", after=after), tmp_path) == []


def test_watching_keeps_no_tensor_alive() -> None:
    watcher = Watcher()
    watcher.start()
    try:
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses = []
        for _ in range(12):
            optimizer.zero_grad()
            loss = model(torch.randn(5, 3)).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss)
        references = [weakref.ref(each) for each in (*losses, *model.parameters())]
        del losses, loss, model, optimizer
        gc.collect()
        assert [each for each in references if each() is not None] == []
    finally:
        watcher.stop()


MUON = """
import torch
from torch import nn
torch.manual_seed(0)
vocab, width = {vocab}, 8


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.blocks = nn.ModuleList(
            nn.ModuleDict({{"up": nn.Linear(width, 16), "output": nn.Linear(16, width)}})
            for _ in range(2)
        )
        self.{head} = nn.Linear(width, vocab, bias=False)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = x + block["output"](block["up"](x).relu())
        return self.{head}(x)


model = Net()
{before}
muon = torch.optim.Muon({given})
for step in range(4):
    muon.zero_grad()
    x = torch.randint(vocab, (4, 9))
    logits = model(x[:, :-1])
    nn.functional.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten()).backward()
    muon.step()
"""
HIDDEN = "[p for n, p in model.named_parameters() if p.ndim == 2 and not {}]"


@pytest.mark.parametrize(
    ("given", "options", "held"),
    [
        ("[p for p in model.parameters() if p.ndim == 2]", {}, "`model.embed.weight`, `model.hea"),
        ("[model.embed.weight]", {}, "the embedding (`model.embed.weight`)"),
        (HIDDEN.format("'embed' in n"), {}, "the output layer (`model.head.weight`)"),
        (HIDDEN.format("'embed' in n"), {"head": "last"}, ""),  # called nothing that is known
        (HIDDEN.format("('embed' in n or 'head' in n)"), {}, ""),
        # Hidden layers with as many outputs as there are tokens, and one that is called output.
        (HIDDEN.format("('embed' in n or 'head' in n)"), {"vocab": 16}, ""),
        (HIDDEN.format("('embed' in n or 'head' in n)"), {"vocab": 8}, ""),
        (
            "[p for p in model.parameters() if p.ndim == 2]",
            {"before": "model.embed.requires_grad_(False), model.head.requires_grad_(False)"},
            "",
        ),
    ],
)
def test_what_torchs_muon_holds(
    given: str, options: dict[str, object], held: str, tmp_path: Path
) -> None:
    program = MUON.format(**{"vocab": 32, "head": "head", "before": "", "given": given, **options})
    found = [each for each in watched(program, tmp_path) if each.code == "TL312"]
    if not held:
        assert found == []
        return
    assert held in found[0].message
    assert found[0].place.line == program[: program.index("muon = ")].count("\n") + 1


REPEATED = """
import torch
from torch import nn
torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.layers = {layers}

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

def repeat(module, count):
    return nn.ModuleList([module for _ in range(count)])

net = Net({depth})
{before}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("layers", "options", "place"),
    [
        ("nn.ModuleList([nn.Linear(4, 4)] * depth)", {}, "[nn.Linear(4, 4)] * depth"),
        ("repeat(nn.Linear(4, 4), depth)", {}, "[module for _"),
        ("repeat(nn.Linear(4, 4), depth)  # shared", {}, "[module for _"),  # `repeat` is not
        ("nn.ModuleList([nn.Linear(4, 4)] * depth)  # shared", {}, ""),
        ("nn.ModuleList([nn.Linear(4, 4)] * depth)", {"depth": 1}, ""),
        ("nn.ModuleList([nn.ReLU()] * depth + [nn.Linear(4, 4)])", {}, ""),
        (
            "nn.ModuleList([nn.Linear(4, 4)] * depth + [nn.Linear(4, 4)])",
            {"before": "net.layers[0].requires_grad_(False)"},
            "",
        ),
    ],
)
def test_one_layer_in_several_places(
    layers: str, options: dict[str, object], place: str, tmp_path: Path
) -> None:
    program = REPEATED.format(**{"layers": layers, "depth": 3, "before": "", **options})
    found = [each for each in watched(program, tmp_path) if each.code == "TL313"]
    if not place:
        assert found == []
        return
    assert "One `Linear` is in 3 places of this `ModuleList`" in found[0].message
    assert "the same 20 parameters, where 3 layers would have 60" in found[0].message
    assert found[0].place.line == program[: program.index(place)].count("\n") + 1
