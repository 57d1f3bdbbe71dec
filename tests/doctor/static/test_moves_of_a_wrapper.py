"""A state dict that is taken on the CPU, of a model that goes back to the device (TL805)."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

PROGRAM = """
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(64, 3)
loader = DataLoader(TensorDataset(x, x[:, :1]), batch_size=16, shuffle=True)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
several, epochs, every = sys.argv[1] == "several", int(sys.argv[2]), int(sys.argv[3])
model = nn.Linear(3, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if several:
    model = nn.DataParallel(model)
for epoch in range(epochs):
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
    if epoch % every == 0:
        if several:
            state = model.module{on_cpu}.state_dict()
        else:
            state = model{on_cpu}.state_dict()
        torch.save(state, f"{{epoch}}.pt")
        {back}
torch.save(state, "last.pt")
"""


@pytest.mark.parametrize(
    ("on_cpu", "back", "expected"),
    [
        (".cpu()", "model = model.to(device)", set()),
        (".cpu()", "model.to(device)", set()),
        ("", "model = model.to(device)", {"TL805"}),
        (".to(device)", "pass", {"TL805"}),
    ],
)
def test_a_model_that_leaves_its_tensors_on_the_cpu(
    on_cpu: str, back: str, expected: set[str]
) -> None:
    found = check_text(PROGRAM.format(on_cpu=on_cpu, back=back), "train.py").findings
    assert {each.code for each in found if each.severity == "error"} == expected
