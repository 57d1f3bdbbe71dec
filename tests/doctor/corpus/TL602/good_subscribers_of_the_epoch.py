"""Functions subscribe to events; the schedule ticks at the end of an epoch, beside an evaluation."""
from collections import defaultdict

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.3)
x, held = torch.randn(400, 6), torch.randn(80, 6)
subscribers = defaultdict(list)


def happens(event):
    for function in subscribers[event]:
        function()


def evaluate():
    model.eval()
    with torch.no_grad():
        right = (model(held).argmax(1) == held[:, :3].argmax(1)).float().mean()
    model.train()
    print(f"accuracy {right:.3f}, learning rate {schedule.get_last_lr()[0]:.2e}")


subscribers["gradients"] += [optimizer.step, optimizer.zero_grad]
subscribers["epoch"] += [schedule.step, evaluate]
for epoch in range(10):
    for picked in torch.randperm(len(x)).split(8):
        nn.functional.cross_entropy(model(x[picked]), x[picked, :3].argmax(1)).backward()
        happens("gradients")
    happens("epoch")
