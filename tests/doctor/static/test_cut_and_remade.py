"""Loops that end early, scores of whole passes, optimizers made again, and states that were not
copied, which are not what they look like."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

HEAD = """
import copy
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(100, 6)
loader = DataLoader(TensorDataset(x, x[:, :1]), batch_size=32, shuffle=True)
test_loader = DataLoader(TensorDataset(x, x[:, :1]), batch_size=32)
model = nn.Linear(6, 1)
"""
REMADE = """
def fit(model, batches, controller, every=1):
    def make():
        return torch.optim.NAdam(model.parameters(), lr=1e-3)

    optimizer = make()
    for epoch in range(3):
        optimizer.zero_grad()
        seen = 0
        for rows in batches:
            loss = F.mse_loss(model(rows), rows) / every
            loss.backward()
            if (seen + 1) % every == 0:
                {step}
                if controller.step().get("rewound", False):
                    optimizer = make()
                optimizer.zero_grad()
            seen += 1
        optimizer.step()
        optimizer.zero_grad()
"""
BESIDE = """
critic = nn.Linear(1, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
for epoch in range(3):
    for inputs, targets in loader:
        optimizer.zero_grad()
        F.softplus(-critic(model(inputs))).mean().backward()
        critic_optimizer.zero_grad()
        real, made = critic(targets), critic(model(inputs).detach())
        (F.softplus(-real) + F.softplus(made)).mean().backward()
        critic_optimizer.step()
    optimizer.step()
"""
PART = """
total, count = 0.0, 0
model.eval()
with torch.no_grad():
    for number, (inputs, targets) in enumerate(test_loader):
        {ends}
        total += F.mse_loss(model(inputs), targets).item()
        count += 1
print(total / count)
"""
WHOLE = """
def score(model):
    predicted, wanted = [], []
    model.eval()
    with torch.no_grad():
        for inputs, targets in test_loader:
            predicted.append(model(inputs))
            wanted.append(targets)
    {returns}


scores = []
for trial in range(5):
    scores.append(score(nn.Linear(6, 1)))
print(sum(scores) / len(scores))
"""
BEST = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def score():
    model.eval()
    with torch.no_grad():
        return sum(F.mse_loss(model(i), t, reduction="sum").item() for i, t in test_loader)


best = float("inf")
for epoch in range(4):
    model.train()
    for inputs, targets in loader:
        optimizer.zero_grad()
        F.mse_loss(model(inputs), targets).backward()
        optimizer.step()
    found = score()
    if found < best:
        best, state = found, {kept}
model.load_state_dict(state)
print(score())
"""


@pytest.mark.parametrize(
    ("program", "codes"),
    [
        (REMADE.format(step="optimizer.step()"), []),
        (REMADE.format(step="pass"), ["TL107"]),
        (BESIDE, ["TL107"]),
        (PART.format(ends="if number >= 2:\n            break"), []),
        (PART.format(ends="pass"), ["TL709"]),
        (
            WHOLE.format(
                returns="return F.mse_loss(torch.cat(predicted), torch.cat(wanted)).item()"
            ),
            [],
        ),
        (BEST.format(kept="model.state_dict()"), ["TL805"]),
        (BEST.format(kept="copy.deepcopy(model.state_dict())"), ["TL711"]),
    ],
)
def test_codes(program: str, codes: list[str]) -> None:
    report = check_text(HEAD + program, "/train.py")
    assert [each.code for each in report.findings if each.severity != "advice"] == codes
