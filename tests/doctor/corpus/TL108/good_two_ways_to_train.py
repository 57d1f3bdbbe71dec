"""A wrapper of somebody's own steps by itself; without it the loop does."""
import argparse

import torch
from torch import nn


class Engine:
    def __init__(self, model, opt):
        self.model, self.opt = model, opt

    def train_on(self, loss):
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()


parser = argparse.ArgumentParser()
parser.add_argument("--engine", action="store_true")
args = parser.parse_args()
torch.manual_seed(0)
model = nn.Linear(4, 2)
opt = torch.optim.Adam(model.parameters())
engine = Engine(model, opt) if args.engine else None
for x in torch.randn(5, 8, 4):
    loss = nn.functional.cross_entropy(model(x), x[:, :2].argmax(1))
    if engine is not None:
        engine.train_on(loss)
    else:
        opt.zero_grad()
        loss.backward()
        opt.step()
print(loss.item())
