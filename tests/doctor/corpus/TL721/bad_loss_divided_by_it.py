import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, index):
        x = torch.full((5,), index / 20)
        return dict(source=x, target=x.sum().view(1), weight=torch.tensor(1.0))


class Trainer:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
        self.criterion = nn.MSELoss(reduction="sum")

    def training_step(self, batch):
        batch_size = len(batch)  # <- TL721
        output = self.net(batch["source"])
        loss = self.criterion(output, batch["target"]) / batch_size
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


torch.manual_seed(0)
trainer = Trainer(nn.Linear(5, 1))
loader = DataLoader(Pairs(), batch_size=5, shuffle=True)
for epoch in range(2):
    losses = [trainer.training_step(batch) for batch in loader]
