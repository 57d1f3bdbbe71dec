"""How long an editor waits for the first diagnostics of `trueloop lsp`.

A client starts the server as editors do and opens a small file, after which the server is warm;
then it opens files of 500 lines, one after the other. The time runs from the moment when a file is
opened to the moment when its diagnostics have arrived. `typed` is the same after a change, without
the pause in which the server waits for the next key.

    python benchmarks/lsp_speed.py
"""

from __future__ import annotations

import argparse
import ast
import statistics
import sys
import tempfile
import time
from pathlib import Path

from common import save_results, table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from doctor.language_server.editor import Editor
from trueloop.doctor.language_server.server import PAUSE

LINES = 500
ROOT = Path(__file__).parents[1]
FUNCTION = '''
def train_{k}(model, loader, optimizer, epochs):
    """One of many trainings."""
    criterion = nn.CrossEntropyLoss()
    history = []
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            correct = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
        history.append((total / len(loader), correct))
        if epoch % 10 == 0:
            print(epoch, history[-1])
    return history
'''
SCRIPT = """

class Net{k}(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x):
        return self.layers(x)


model{k} = Net{k}()
optimizer{k} = torch.optim.AdamW(model{k}.parameters(), lr=1e-3)
for step in range(100):
    loss = model{k}(torch.randn(8, 4)).square().mean()
    optimizer{k}.zero_grad()
    loss.backward()
    optimizer{k}.step()
"""
HEAD = "import torch\nfrom torch import nn\n"


def programs() -> dict[str, str]:
    """Texts of 500 lines, by name: two that train from end to end, and three of our own."""
    found = {
        "24 functions that train": HEAD + "".join(FUNCTION.format(k=k) for k in range(24)),
        "27 trainings, one after the other": HEAD + "".join(SCRIPT.format(k=k) for k in range(27)),
    }
    for path in sorted((ROOT / "benchmarks").rglob("*.py"), key=lambda each: -each.stat().st_size):
        text = path.read_text("utf-8")
        if "backward" in text and len(found) < 5:
            found[f"{path.relative_to(ROOT)}, twice"] = text + text
    return {name: _cut(text) for name, text in found.items()}


def _cut(text: str) -> str:
    """The first 500 lines, or as many as parse, and comments up to 500."""
    lines = text.splitlines(True)[:LINES]
    while True:
        try:
            ast.parse("".join(lines))
        except SyntaxError:
            lines.pop()
        else:
            return "".join([*lines, *["# one more line\n"] * (LINES - len(lines))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        begin = time.perf_counter()
        editor = Editor(Path(name))
        editor.open("first.py", HEAD + "model = nn.Linear(4, 2)\n")
        cold = time.perf_counter() - begin
        for number, (what, text) in enumerate(programs().items()):
            opened, typed = [], []
            for turn in range(given.rounds):
                file = f"program_{number}_{turn}.py"
                begin = time.perf_counter()
                editor.open(file, text)
                opened.append(time.perf_counter() - begin)
                begin = time.perf_counter()
                editor.type(file, 2, f"{text}\nx = {turn}\n")
                editor.diagnostics(editor.uri(file), version=2)
                typed.append(time.perf_counter() - begin - PAUSE)
                editor.shut(file)
            rows.append(
                {
                    "program of 500 lines": what,
                    "opened ms": round(1e3 * statistics.median(opened)),
                    "slowest": round(1e3 * max(opened)),
                    "typed ms": round(1e3 * statistics.median(typed)),
                }
            )
        editor.close()
    print(f"a new server, to the diagnostics of its first file: {cold:.2f} s")
    print(table(rows))
    save_results("lsp_speed", {"cold s": round(cold, 2), "rounds": given.rounds, "rows": rows})


if __name__ == "__main__":
    main()
