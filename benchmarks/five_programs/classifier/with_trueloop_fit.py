import torch
from shared import ConvNet, textures
from torch import nn

import trueloop

EPOCHS, ACCUMULATE = 8, 2

torch.manual_seed(0)
train = trueloop.Feed(textures(512, seed=0), 32, shuffle=True)
val = trueloop.Feed(textures(256, seed=1), 128)
model = ConvNet()
step = trueloop.Step(
    model,
    torch.optim.Adam(model.parameters(), lr=1e-2, fused=True),
    trueloop.supervised(nn.CrossEntropyLoss()),
    schedule=trueloop.schedules.cosine(),
    precision="bf16",
    accumulate=ACCUMULATE,
    clip_norm=1.0,
)
accuracy = trueloop.metrics.for_task("multiclass", classes=4)
history = trueloop.fit(step, train, val, epochs=EPOCHS, metrics=accuracy)
result = history.records[-1].scores
