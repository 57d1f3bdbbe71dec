import torch
from shared import GPT, next_token_loss, windows

import trueloop

UPDATES = 80


def loss_fn(model, tokens):
    return next_token_loss(model(tokens[:, :-1]), tokens)


torch.manual_seed(0)
train = trueloop.Feed(windows(500, seed=0), 32, shuffle=True)
val = trueloop.Feed(windows(50, seed=1), 32)
model = GPT()
step = trueloop.Step(
    model,
    trueloop.optimizers.adamw(model, lr=1e-2, weight_decay=0.1),
    loss_fn,
    schedule=trueloop.schedules.cosine(),
    clip_norm=1.0,
)

for tokens in trueloop.batches(step, train, updates=UPDATES):
    step(tokens)
result = trueloop.evaluate(model, val, loss_fn).scores
