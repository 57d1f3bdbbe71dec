import torch
from ignite.engine import Engine, Events
from ignite.handlers import LRScheduler
from torch import nn

model = nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
data = torch.utils.data.TensorDataset(torch.randn(640, 16), torch.randint(0, 4, (640,)))
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
WINDOW = 4
warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, 1.0, total_iters=100)


def update(engine, batch):
    inputs, targets = batch
    loss = nn.functional.cross_entropy(model(inputs), targets) / WINDOW
    loss.backward()
    if engine.state.iteration % WINDOW == 0:
        optimizer.step()
        optimizer.zero_grad()
    return loss.item() * WINDOW


trainer = Engine(update)
trainer.add_event_handler(Events.ITERATION_COMPLETED(every=WINDOW), LRScheduler(warmup))
trainer.run(loader, max_epochs=5)
