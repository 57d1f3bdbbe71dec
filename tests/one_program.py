"""The way of one program through `trueloop check`: which files and functions of the reader's it
passes through.

    python tests/one_program.py      # prints them, in order

The program trains a linear layer. It is checked a second time here: the first one parses and loads
what all later ones share.
"""

from __future__ import annotations

import sys

import one_batch
from trueloop.doctor.static import check_text

PROGRAM = """\
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters())
for x, y in [(torch.randn(8, 4), torch.randint(2, (8,))) for _ in range(3)]:
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def one_program() -> list[one_batch.Function]:
    """The reader's functions, each once, in the order of their first calls; the rules are not among
    them."""
    assert check_text(PROGRAM, "first.py", strict=True).findings == []
    trace = one_batch.Trace()
    sys.setprofile(trace)
    try:
        check_text(PROGRAM, "train.py", strict=True)
    finally:
        sys.setprofile(None)
    ours = ("doctor/static/", "doctor/model/")
    return [found for found in dict.fromkeys(trace.calls) if found.file.startswith(ours)]


if __name__ == "__main__":
    functions = one_program()
    print(f"{len(one_batch.files(functions))} files, {len(functions)} functions")
    for function in functions:
        print("   ", *function)
