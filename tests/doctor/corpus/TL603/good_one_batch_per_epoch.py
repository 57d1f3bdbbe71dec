"""Random crops of one long series: an "epoch" is one update, and the loader has one batch."""

import torch
import torch.nn as nn


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(1, 8, batch_first=True)
        self.out = nn.Linear(8, 1)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.out(states[:, -1])


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    series = torch.sin(torch.arange(400) / 7)
    windows = series.unfold(0, 11, 1)
    inputs, targets = windows[:, :10].unsqueeze(-1), windows[:, 10:]
    dataset = torch.utils.data.TensorDataset(inputs, targets)
    loader = torch.utils.data.DataLoader(dataset, batch_size=len(dataset), shuffle=True)
    epochs = 12

    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.05, total_steps=epochs)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        scheduler.step()
    print(loss.item())


if __name__ == "__main__":
    main()
