import torch
from ignite.engine import Engine, Events
from torch import nn


class Run:
    def __init__(self, trunk, head, loader):
        self.trunk, self.head = trunk, head
        self.trunk.requires_grad_(False)
        self.trunk.eval()
        self.optimizer = torch.optim.SGD(self.head.parameters(), lr=0.1)
        engine = Engine(self.update)
        engine.add_event_handler(Events.EPOCH_COMPLETED, self.picture, loader)
        engine.run(loader, 5)

    def update(self, engine, batch):
        with torch.no_grad():
            features = self.trunk(batch[0])
        loss = nn.functional.cross_entropy(self.head(features), batch[1])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def picture(self, engine, loader):
        image = next(iter(loader))[0][:1].requires_grad_()
        self.head(self.trunk(image)).max().backward()
        print(image.grad.abs().max())


Run(
    nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16)),
    nn.Linear(16, 3),
    torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.randn(64, 16), torch.randint(0, 3, (64,))),
        batch_size=8,
        shuffle=True,
    ),
)
