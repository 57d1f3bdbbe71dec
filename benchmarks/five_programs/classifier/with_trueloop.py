import torch
from shared import ConvNet, textures
from torch import nn

import trueloop

EPOCHS, ACCUMULATE = 8, 2

torch.manual_seed(0)
train = trueloop.Feed(textures(512, seed=0), 32, shuffle=True)
val = trueloop.Feed(textures(256, seed=1), 128)
model = ConvNet()
loss_fn = trueloop.supervised(nn.CrossEntropyLoss())
accuracy = trueloop.metrics.for_task("multiclass", classes=4)
step = trueloop.Step(
    model,
    torch.optim.Adam(model.parameters(), lr=1e-2, fused=True),
    loss_fn,
    schedule=trueloop.schedules.cosine(),
    precision="bf16",
    accumulate=ACCUMULATE,
    clip_norm=1.0,
)
step.plan(epochs=EPOCHS, batches=len(train))

for epoch in range(EPOCHS):
    for batch in train.epoch(epoch):
        step(batch)
    result = trueloop.evaluate(model, val, loss_fn, accuracy, precision="bf16").scores
    step.end_epoch(result)
