import torch, trueloop
from torch import nn
from trueloop import optimizers, schedules, Step, Feed, fit, supervised
torch.manual_seed(0)
x = torch.randn(256, 8); y = (x[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
muon, adamw = optimizers.muon(model, lr=1e-3)
step = Step(model, [muon, adamw], supervised(nn.CrossEntropyLoss()), schedule=schedules.cosine(), precision="bf16", clip_norm=1.0, accumulate=2)
train, val = Feed((x, y), 16, shuffle=True), Feed((x, y), 32)
step.plan(epochs=4, batches=len(train))
for epoch in range(2):
    for batch in train.epoch(epoch):
        step(batch)
    step.end_epoch()
fit(step, train, val, epochs=4)
