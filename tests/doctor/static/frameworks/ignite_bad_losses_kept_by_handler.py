import torch
from ignite.engine import Engine, Events
from torch import nn

model = nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
data = torch.utils.data.TensorDataset(torch.randn(640, 16), torch.randint(0, 4, (640,)))
loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True)
losses = []


def update(engine, batch):
    inputs, targets = batch
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss


trainer = Engine(update)


@trainer.on(Events.ITERATION_COMPLETED)
def remember(engine):
    losses.append(engine.state.output)  # <- TL204


trainer.run(loader, max_epochs=5)
