"""A generator that is frozen while others train on its images, and cleared before its own pass
(TL101)."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

PROGRAM = """
import argparse
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--average", action="store_true")
args = parser.parse_args()


def requires_grad(model, flag):
    for parameter in model.parameters():
        parameter.requires_grad = flag


loader = DataLoader(torch.randn(64, 3), batch_size=16, shuffle=True)
encoder, generator, average = nn.Linear(3, 2), nn.Linear(2, 3), nn.Linear(2, 3)
critic = nn.Linear(3, 1) if args.average else None
encoder_optimizer = torch.optim.Adam(encoder.parameters())
generator_optimizer = torch.optim.Adam(generator.parameters())
critic_optimizer = torch.optim.Adam(critic.parameters()) if args.average else None
requires_grad(average, False)
for epoch in range(3):
    for images in loader:
        if critic is not None:
            requires_grad(generator, False)
            loss = F.softplus(critic(generator(encoder(images)))).mean()
            critic.zero_grad()
            loss.backward()
            critic_optimizer.step()
        requires_grad(generator, True)
        codes = encoder(images)
        made = {made}
        loss = F.mse_loss(made, images)
        {order}
        encoder_optimizer.step()
        generator_optimizer.step()
"""
CLEAR = "encoder.zero_grad(); generator.zero_grad()"


CHOSEN = "average(codes) if args.average else generator(codes)"


@pytest.mark.parametrize(
    ("made", "order", "expected"),
    [
        (CHOSEN, f"{CLEAR}; loss.backward()", False),
        (CHOSEN, f"loss.backward(); {CLEAR}", True),
        ("average(codes)", f"{CLEAR}; loss.backward()", True),  # the only loss of the generator
    ],
)
def test_a_generator_is_cleared_before_its_own_backward(
    made: str, order: str, expected: bool
) -> None:
    found = check_text(PROGRAM.format(made=made, order=order), "train.py").findings
    assert ("TL101" in [each.code for each in found]) is expected
