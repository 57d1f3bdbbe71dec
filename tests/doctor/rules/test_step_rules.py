"""What rules about steps say of each way to go wrong."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

TWO_STEPS = """
import torch
from torch import nn
coder, critic = nn.Linear(4, 4), nn.Linear(4, 1)
for_coder = torch.optim.Adam(coder.parameters())
for_critic = torch.optim.Adam(critic.parameters())
for x in torch.utils.data.DataLoader(read("rows"), 8, shuffle=True):
    for_critic.zero_grad()
    critic(x).mean().backward()
    for_critic.step()
    for_coder.zero_grad()
    again = (coder(x) - x).square().mean()
    {first}
    for_coder.step()
    for_coder.zero_grad()
    {second}
    for_coder.step()
"""
BACKWARD = "coder(x).square().mean().backward()"


@pytest.mark.parametrize(
    ("first", "second", "line", "says"),
    [
        ("pass", BACKWARD, 14, "before it, as for its other step: it changes nothing"),
        ("pass", "pass", 14, "they keep their initial values"),
    ],
)
def test_a_step_without_gradients_and_what_becomes_of_it(
    first: str, second: str, line: int, says: str
) -> None:
    text = TWO_STEPS.format(first=first, second=second)
    found = check_text(text, "<text>", strict=True).findings
    assert [(each.code, each.place.line) for each in found][:1] == [("TL108", line)]
    assert says in found[0].message
    right = TWO_STEPS.format(first="again.backward()", second=BACKWARD)
    assert not check_text(right, "<text>", strict=True).findings
