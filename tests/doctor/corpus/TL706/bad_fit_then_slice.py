import numpy as np
import torch
from sklearn.preprocessing import MinMaxScaler
from torch import nn, optim


def load_series(n=240):
    t = np.arange(n)
    return (np.sin(t / 9) + 0.01 * t).reshape(-1, 1)


def windows(values, length):
    xs = np.stack([values[i : i + length] for i in range(len(values) - length)])
    return torch.tensor(xs, dtype=torch.float32), torch.tensor(values[length:], dtype=torch.float32)


class Forecaster(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.head(out[:, -1])


def main():
    torch.manual_seed(0)
    series = load_series()
    scaler = MinMaxScaler(feature_range=(-1, 1))
    scaled = scaler.fit_transform(series)  # <- TL706
    split = int(len(scaled) * 0.8)
    train, test = scaled[:split], scaled[split:]
    x_train, y_train = windows(train, 12)
    x_test, y_test = windows(test, 12)

    model = Forecaster()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    loss_fn = nn.MSELoss()
    for epoch in range(10):
        model.train()
        optimizer.zero_grad()
        loss = loss_fn(model(x_train), y_train)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print("test", loss_fn(model(x_test), y_test).item())


if __name__ == "__main__":
    main()
