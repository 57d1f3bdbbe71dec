"""The same with `fit`: the length of the run is given in updates, and its schedule ends there."""

import math

import torch
from data import windows
from model import GPT
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import trueloop
from trueloop import optimizers, schedules

UPDATES, WARMUP = 80, 8

torch.manual_seed(0)
train = trueloop.Feed(windows(700, seed=0), 32, shuffle=True, drop_last=True)
val = trueloop.Feed(windows(50, seed=1), 32)
model = GPT()


def next_token_loss(model: nn.Module, tokens: Tensor) -> Tensor:
    logits = model(tokens[:, :-1])
    return cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


step = trueloop.Step(
    model,
    optimizers.adamw(model, lr=1e-2, weight_decay=0.1),
    next_token_loss,
    schedule=schedules.warmup_cosine(WARMUP),
    clip_norm=1.0,
)
history = trueloop.fit(step, train, val, updates=UPDATES)

loss = history.records[-1].scores["val_loss"]
print(f"val_loss {loss:.4f}  perplexity {math.exp(loss):.2f}")
