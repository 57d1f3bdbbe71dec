"""The rules on the order of a step, where a whole program would be too long for the question."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

BY_HAND = """
import torch
from torch import nn
from torch.nn import functional as F
loader = torch.utils.data.DataLoader(load("train"), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.Adam(model.parameters())
for x, y in loader:
    F.cross_entropy(model(x), y).backward()
    {clear}
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("clear", "expected"),
    [
        ("for p in model.parameters(): p.grad = None", ["TL101"]),
        ("for p in model.parameters(): p.grad.zero_()", ["TL101"]),
        ("for p in model[0].parameters(): p.grad = None", []),
        ("for p in list(model.parameters())[:2]: p.grad = None", []),
        ("for n, p in model.named_parameters():\n        if 'bias' in n: p.grad = None", []),
        (
            "for p in model.parameters():\n        if p.ndim < 2: continue\n        p.grad = None",
            [],
        ),
    ],
)
def test_gradients_cleared_by_hand_before_the_step(clear: str, expected: list[str]) -> None:
    found = check_text(BY_HAND.format(clear=clear), "<text>", strict=True).findings
    assert [each.code for each in found] == expected


SCALED = """
import torch
from torch import nn
loader = torch.utils.data.DataLoader(load("train"), batch_size=8, shuffle=True)
model = nn.Linear(4, 3).cuda()
optimizer = torch.optim.Adam(model.parameters())
scaler = torch.amp.GradScaler("cuda")
for x, y in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    {first}
    {second}
    if torch.isfinite(norm):
        optimizer.step()
    scaler.update()
"""
UNSCALE = "scaler.unscale_(optimizer)"
CLIP = "norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)"


def test_a_step_without_the_scaler_may_still_be_clipped_too_early() -> None:
    late = check_text(SCALED.format(first=CLIP, second=UNSCALE), "<text>", strict=True).findings
    assert [each.code for each in late] == ["TL501"]
    right = check_text(SCALED.format(first=UNSCALE, second=CLIP), "<text>", strict=True).findings
    assert right == []


CHOSEN = """
import os
import torch
from network import Small


class Solver(object):
    def __init__(self, config, loader):
        self.net = None
        if self.kind == "small":
            self.net = Small(3)
        self.optimizer = torch.optim.Adam(list(self.net.parameters()), self.lr, [self.beta, 0.99])

    def reset(self):
        {clear}

    def train(self):
        if os.path.isfile(path):
            print("%s is there already" % path)
        else:
            for i, (x, y) in enumerate(self.loader):
                loss = torch.nn.functional.cross_entropy(self.net(x), y)
                self.reset()
                loss.backward()
                self.optimizer.step()
"""


@pytest.mark.parametrize(
    ("clear", "expected"),
    [
        ("self.net.zero_grad()", []),
        ("self.optimizer.zero_grad()", []),
        ("self.net.train()", ["TL102"]),
    ],
)
def test_a_model_that_one_option_makes(clear: str, expected: list[str]) -> None:
    found = check_text(CHOSEN.format(clear=clear), "<text>", strict=True).findings
    assert [each.code for each in found] == expected


FOREIGN = """
import pyro
import torch

def train(data, model):
    optimizer = {made}
    for batch in data:
        loss = model(batch)
        loss.backward()
        {step}
        {clear}
"""


@pytest.mark.parametrize(
    ("made", "step", "clear", "expected"),
    [
        # An optimizer of its own kind: it is told what to update, and something else clears.
        ("pyro.optim.Adam({})", "optimizer.step(used(batch))", "zero_grads(used(batch))", []),
        ("pyro.optim.Adam({})", "optimizer.step(set(used(batch)))", "pass", []),
        ("torch.optim.Adam(model.parameters())", "optimizer.step()", "pass", ["TL102"]),
    ],
)
def test_an_optimizer_that_is_told_what_to_update(
    made: str, step: str, clear: str, expected: list[str]
) -> None:
    text = FOREIGN.format(made=made, step=step, clear=clear)
    found = check_text(text, "<text>", strict=True).findings
    assert [each.code for each in found] == expected


AVERAGED = """
import argparse, torch
from plugins import average_of
from torch import nn
parser = argparse.ArgumentParser()
parser.add_argument("--average", action="store_true")
args = parser.parse_args()
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
average = average_of(args)
for epoch in range(10):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(torch.load("a.pt")):
        (nn.functional.cross_entropy(model(x), y) / 4).backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
            {clear}
            {update}
"""


@pytest.mark.parametrize(
    ("clear", "update", "expected"),
    [
        ("pass", "if average is not None: average.update(model)", ["TL102"]),
        ("pass", "if average: average.update_parameters(model)", ["TL102"]),
        ("pass", "average.update(model)", []),  # it may clear: nobody knows
        ("pass", "if average is not None: average.update(model, optimizer)", []),
        ("optimizer.zero_grad()", "if average is not None: average.update(model)", []),
    ],
)
def test_a_window_that_is_not_cleared_beside_code_that_gets_the_model(
    clear: str, update: str, expected: list[str]
) -> None:
    text = AVERAGED.format(clear=clear, update=update)
    assert [each.code for each in check_text(text, "<text>", strict=True).findings] == expected


TIMED = """
import time
import torch
from torch import nn
layer = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).to("cuda")
optimizer = torch.optim.Adam(layer.parameters(), 1e-4)
inputs = {inputs}.to("cuda")
start = time.time()
for _ in range(1000):
    loss = ((layer(inputs) - torch.zeros(8, 3, device="cuda")) ** 2).mean()
    loss.backward()
    optimizer.step()
print((time.time() - start) / 1000)
"""


@pytest.mark.parametrize(
    ("inputs", "expected"), [("torch.ones(8, 4)", []), ("torch.load('inputs.pt')", ["TL102"])]
)
def test_time_is_measured_on_one_number(inputs: str, expected: list[str]) -> None:
    found = check_text(TIMED.format(inputs=inputs), "<text>", strict=True).findings
    assert [each.code for each in found] == expected


SEVERAL = """
import torch
from torch.cuda.amp.grad_scaler import GradScaler

class Optimizers:
    def __init__(self, configs, groups):
        self.optimizers = {}
        for name, parameters in groups.items():
            self.optimizers[name] = configs[name]["optimizer"].setup(params=parameters)

    def zero_grad(self):
        for optimizer in self.optimizers.values():
            optimizer.zero_grad()

    def step_some(self, scaler: GradScaler, names):
        for name in names:
            optimizer = self.optimizers[name]
            if any(p.grad is not None for g in optimizer.param_groups for p in g["params"]):
                scaler.step(optimizer)
"""


def test_a_method_that_steps_several_optimizers_leaves_the_update_to_its_caller() -> None:
    """Whoever calls it runs the backward too: without one nothing here is an iteration."""
    assert not check_text(SEVERAL, "optimizers.py", strict=True).findings
