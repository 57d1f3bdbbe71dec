import torch
from ignite.engine import Engine
from torch import nn

model = nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
data = torch.utils.data.TensorDataset(torch.randn(640, 16), torch.randint(0, 4, (640,)))
loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True)


def update(engine, batch):
    model.train()
    inputs, targets = batch
    loss = nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.zero_grad()  # <- TL101
    optimizer.step()
    return loss.item()


trainer = Engine(update)
trainer.run(loader, max_epochs=5)
