"""TL301 where the groups of an optimizer are changed by hand after a layer was replaced."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

PROGRAM = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Linear(8, 1)
    def forward(self, x):
        return self.head(self.body(x))
net = Net()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for stage in range(3):
    {before}
    net.head = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    {after}
    for step in range(100):
        x = torch.randn(8, 4)
        opt.zero_grad()
        net(x).square().mean().backward()
        opt.step()
"""
CHANGES = [
    "opt.param_groups = []; opt.add_param_group({'params': net.parameters()})",
    "opt.param_groups.clear(); opt.add_param_group({'params': list(net.parameters())})",
    "opt.param_groups = [{**opt.param_groups[0], 'params': list(net.parameters())}]",
    "opt.param_groups[0]['params'] = list(net.parameters())",
    "opt.param_groups[0]['params'] = [p for p in net.parameters() if p.requires_grad]",
    "opt.param_groups[0]['params'].extend(net.head.parameters())",
    "opt.param_groups[0]['params'] += list(net.head.parameters())",
    "opt.param_groups[0].update(params=list(net.parameters()))",
    "opt.param_groups.append({'params': list(net.head.parameters()), 'lr': 1e-3})",
    "for group in opt.param_groups: group['params'] = list(net.parameters())",
    "opt.__init__(net.parameters(), 1e-3)",
]


def codes(**places: str) -> list[str]:
    text = PROGRAM.format(**{"before": "pass", "after": "pass"} | places)
    return [each.code for each in check_text(text, "grow.py", strict=True).findings]


@pytest.mark.parametrize("change", CHANGES)
def test_the_optimizer_gets_the_new_layer(change: str) -> None:
    assert codes(after=change) == []


@pytest.mark.parametrize("change", CHANGES[:1] + CHANGES[3:4])
def test_what_it_got_before_does_not_hold_the_new_layer(change: str) -> None:
    assert codes(before=change) == ["TL301"]


@pytest.mark.parametrize(
    "after", ["pass", "print(opt.param_groups[0]['lr'])", "opt.param_groups[0]['lr'] = 1e-4"]
)
def test_groups_that_are_only_read_or_given_a_rate(after: str) -> None:
    assert codes(after=after) == ["TL301"]
