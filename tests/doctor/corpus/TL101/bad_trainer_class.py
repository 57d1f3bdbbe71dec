import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, loader, lr=1e-3, device="cpu"):
        self.model = model.to(device)
        self.loader = loader
        self.device = device
        self.criterion = nn.MSELoss()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr)
        self.history = []

    def _train_step(self, batch):
        x, y = (t.to(self.device) for t in batch)
        loss = self.criterion(self.model(x), y)
        loss.backward()
        self.model.zero_grad()  # <- TL101
        self.optimizer.step()
        return loss.item()

    def fit(self, epochs):
        self.model.train()
        for _ in range(epochs):
            losses = []
            for batch in self.loader:
                losses.append(self._train_step(batch))
            self.history.append(sum(losses) / len(losses))
        return self.history


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(96, 5)
    y = x.sum(dim=1, keepdim=True)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
    print(Trainer(model, loader).fit(epochs=3))
