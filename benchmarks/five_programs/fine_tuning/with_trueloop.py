import torch
from shared import pretrained, textures
from torch import nn

import trueloop

EPOCHS = 5

torch.manual_seed(0)
train = trueloop.Feed(textures(256, seed=0), 32, shuffle=True)
val = trueloop.Feed(textures(256, seed=1), 128)
model = pretrained()
model.stem.requires_grad_(False).eval()
model.head.reset_parameters()
groups = [
    {"params": model.body.parameters(), "lr": 1e-3},
    {"params": model.head.parameters(), "lr": 1e-2},
]
loss_fn = trueloop.supervised(nn.CrossEntropyLoss())
step = trueloop.Step(model, torch.optim.AdamW(groups, weight_decay=0.01), loss_fn)
accuracy = trueloop.metrics.for_task("multiclass", classes=4)

for epoch in range(EPOCHS):
    for batch in train.epoch(epoch):
        step(batch)
    result = trueloop.evaluate(model, val, loss_fn, accuracy).scores
