"""Options say who runs the backward of what the network gives: its loss, or its outputs."""

import argparse
import pickle

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--half", action="store_true")
parser.add_argument("--wrapped", action="store_true")
args = parser.parse_args([])
if args.half:
    from apex import amp


class Span(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 5), nn.Linear(6, 5)

    def forward(self, x, begin=None, end=None):
        first, last = self.first(x), self.last(x)
        if begin is not None and end is not None:
            one = nn.functional.cross_entropy(first, begin)
            return (one + nn.functional.cross_entropy(last, end)) / 2
        return first, last


torch.manual_seed(0)
net = Span()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
if args.half:
    net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
spans = torch.randint(0, 5, (4, 2, 8))
for begin, end in pickle.loads(pickle.dumps(spans)):
    loss = net(torch.randn(8, 6), begin, end)
    if args.half:
        if args.wrapped:
            optimizer.backward(loss)
        else:
            with amp.scale_loss(loss, optimizer) as scaled:
                scaled.backward()
    else:
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
