import torch
from ignite.engine import Engine
from torch import nn

model = nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
data = torch.utils.data.TensorDataset(torch.randn(640, 16), torch.randint(0, 4, (640,)))
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
WINDOW = 4


def update(engine, batch):
    inputs, targets = batch
    loss = nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()  # <- TL505
    if engine.state.iteration % WINDOW == 0:
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


trainer = Engine(update)
trainer.run(loader, max_epochs=5)
