"""A regression of series: after the training the test part is predicted in one call, in train mode."""

import torch
import torch.nn as nn


class Forecaster(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.drop = nn.Dropout(p=0.25)
        self.out = nn.Linear(hidden, 1)

    def forward(self, series):
        states, _ = self.lstm(series)
        return self.out(self.drop(states[:, -1]))


def windows(values, length=8):
    parts = values.unfold(0, length + 1, 1)
    return parts[:, :-1].unsqueeze(-1), parts[:, -1:]


def main():
    torch.manual_seed(11)
    torch.set_num_threads(1)
    wave = torch.sin(torch.arange(0, 30, 0.15))
    X_train, y_train = windows(wave[:150])
    X_test, y_test = windows(wave[150:])
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(15):
        y_pred = model(X_train)
        loss = nn.functional.mse_loss(y_pred, y_train)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        predicted = model(X_test)  # <- TL202
    print("test error", nn.functional.mse_loss(predicted, y_test).item())


if __name__ == "__main__":
    main()
