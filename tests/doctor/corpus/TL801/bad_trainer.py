import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, loader, path):
        self.model = model
        self.loader = loader
        self.path = path
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        self.epoch = 0
        if os.path.exists(path):
            self._load()

    def _load(self):
        snapshot = torch.load(self.path, weights_only=True)
        self.model.load_state_dict(snapshot["MODEL_STATE"])  # <- TL801
        self.epoch = snapshot["EPOCHS_RUN"]

    def _save(self, epoch):
        snapshot = {"MODEL_STATE": self.model.state_dict(), "EPOCHS_RUN": epoch}
        torch.save(snapshot, self.path)

    def train(self, max_epochs):
        for epoch in range(self.epoch, max_epochs):
            for x, y in self.loader:
                self.optimizer.zero_grad()
                loss = nn.functional.mse_loss(self.model(x), y)
                loss.backward()
                self.optimizer.step()
            self._save(epoch + 1)


def main():
    data = DataLoader(TensorDataset(torch.randn(40, 3), torch.randn(40, 1)), 10, shuffle=True)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "snapshot.pt")
        Trainer(nn.Linear(3, 1), data, path).train(1)
        Trainer(nn.Linear(3, 1), data, path).train(3)


if __name__ == "__main__":
    main()
