"""ReduceLROnPlateau on the validation loss; regression."""

import torch
from torch import nn, optim
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset


class Regressor(nn.Module):
    def __init__(self, n_in=7):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_in, 24), nn.ReLU(), nn.Dropout(p=0.1), nn.Linear(24, 1)
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


def main():
    torch.manual_seed(7)
    x = torch.randn(108, 7)
    y = x @ torch.randn(7) + 0.1 * torch.randn(108)
    train_loader = DataLoader(TensorDataset(x[:84], y[:84]), batch_size=12, shuffle=True)
    val_loader = DataLoader(TensorDataset(x[84:], y[84:]), batch_size=12)

    model = Regressor()
    loss_fn = nn.MSELoss()
    optimizer = optim.Adam(model.parameters(), lr=0.2)
    scheduler = lr_scheduler.ReduceLROnPlateau(
        optimizer, mode="min", factor=0.5, patience=0, threshold=0.3
    )

    for epoch in range(6):
        model.train()
        train_loss = 0.0
        for inputs, targets in train_loader:
            optimizer.zero_grad()
            predictions = model(inputs)
            loss = loss_fn(predictions, targets)
            loss.backward()
            optimizer.step()
            train_loss += loss.item() * inputs.size(0)
        train_loss /= len(train_loader.dataset)

        model.eval()
        val_loss = 0.0
        with torch.no_grad():
            for inputs, targets in val_loader:
                predictions = model(inputs)
                val_loss += loss_fn(predictions, targets).item() * inputs.size(0)
        val_loss /= len(val_loader.dataset)

        scheduler.step(val_loss)
        lr = optimizer.param_groups[0]["lr"]
        print(f"{epoch}: train {train_loss:.4f} val {val_loss:.4f} lr {lr:.4g}")


if __name__ == "__main__":
    main()
