"""benchmarks/doctor_rewrites.py: a program in other words does what it did, and what it prints."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path

import pytest

from warm_python import call_benchmark

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import rewriting

PROGRAM = '''
"""A network is trained and scored."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 2
NOISY = False


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(4, width)
        self.drop = nn.Dropout(0.2)
        self.last = nn.Linear(width, 3)

    def forward(self, x):
        return self.last(self.drop(torch.relu(self.first(x))))


def score(model, batches, *, names=("hits",)):
    hits = 0
    with torch.no_grad():
        for x, y in batches:
            hits += int((model(x).argmax(1) == y).sum())
    return {name: hits for name in names}


def update(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


torch.manual_seed(0)
data = TensorDataset(torch.randn(40, 4), torch.randint(0, 3, (40,)))
loader = DataLoader(data, batch_size=8, shuffle=True)
net = Net(width=8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
total = 0.0
for epoch in range(EPOCHS):
    net.train()
    for number, (x, y) in enumerate(loader):
        if number == 3:
            continue
        if NOISY:
            x = x + torch.randn_like(x)
        else:
            x = x * 1.0
        total += update(net, optimizer, x, y)
    net.eval()
    print(epoch, round(total, 6), score(net, loader, names=("hits", "again")))
print([round(each, 4) for each in net.last.bias.tolist()])
'''


def printed(text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("sys.argv", ["program.py"])
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "program.py", "exec"), {"__name__": "__main__"})
    return out.getvalue()


def test_each_way_prints_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = printed(PROGRAM, monkeypatch)
    assert expected.count("\n") == 3
    for rewrite in rewriting.REWRITES:
        text = rewriting.rewritten(PROGRAM, rewrite)
        assert text is not None, rewrite.__name__
        assert printed(text, monkeypatch) == expected, f"{rewrite.__name__}:\n{text}"


def test_alarms_and_misses_are_counted(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(PROGRAM.replace("    optimizer.zero_grad()\n", ""))
    status, out = call_benchmark(
        "doctor_rewrites", "--folder", str(tmp_path), "--jobs", "1", "--show", timeout=120
    )
    assert status == 0, out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip()}
    assert set(rows) >= {each.__name__ for each in rewriting.REWRITES}
    for rewrite in rewriting.REWRITES:
        assert rows[rewrite.__name__] == ["2", "0", "1", "1"], rewrite.__name__
    assert "alarms by rule: none" in out
    assert "missed by rule: none" in out
