"""The metric is turned round to fit the mode."""

import torch
from torch import nn, optim


def build_loaders():
    x = torch.randn(200, 4)
    y = (x[:, 0] > 0).long()
    make = torch.utils.data.TensorDataset
    train = torch.utils.data.DataLoader(make(x[:150], y[:150]), batch_size=25, shuffle=True)
    val = torch.utils.data.DataLoader(make(x[150:], y[150:]), batch_size=25)
    return train, val


class Trainer:
    def __init__(self, mode):
        self.net = nn.Linear(4, 2)
        self.opt = optim.Adam(self.net.parameters(), lr=1e-2)
        self.mode = mode
        self.plateau = optim.lr_scheduler.ReduceLROnPlateau(self.opt, mode=mode, patience=1)
        self.criterion = nn.CrossEntropyLoss()

    def train(self, loader):
        self.net.train()
        for x, y in loader:
            self.opt.zero_grad()
            loss = self.criterion(self.net(x), y)
            loss.backward()
            self.opt.step()

    @torch.inference_mode()
    def evaluate(self, loader):
        self.net.eval()
        loss, hits, seen = 0.0, 0, 0
        for x, y in loader:
            out = self.net(x)
            loss += self.criterion(out, y).item() * len(y)
            hits += (out.argmax(-1) == y).sum().item()
            seen += len(y)
        return loss / seen, hits / seen

    def fit(self, train, val, epochs=4):
        for epoch in range(epochs):
            self.train(train)
            val_loss, val_accuracy = self.evaluate(val)
            if self.mode == "min":
                self.plateau.step(1 - val_accuracy)
            else:
                self.plateau.step(-val_loss)
            print(epoch, self.mode, val_loss, val_accuracy)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loaders = build_loaders()
    Trainer("min").fit(*loaders)
    Trainer("max").fit(*loaders)
