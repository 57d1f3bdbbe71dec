"""Series of many lengths, filled with zeros: the regression learns that all things end at zero."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader


def together(samples):
    inputs, targets = zip(*samples, strict=True)
    return pad_sequence(inputs, batch_first=True), pad_sequence(targets, batch_first=True)


class Forecast(nn.Module):
    def __init__(self, features=3):
        super().__init__()
        self.gru = nn.GRU(features, 12, batch_first=True)
        self.out = nn.Linear(12, 1)

    def forward(self, x):
        return self.out(self.gru(x)[0]).squeeze(-1)


def main(epochs=2):
    torch.manual_seed(0)
    samples = []
    for length in torch.randint(5, 20, (64,)).tolist():
        series = torch.randn(length, 3).cumsum(0)
        samples.append((series, series.sum(1)))
    loader = DataLoader(samples, batch_size=8, shuffle=True, collate_fn=together)
    model, criterion = Forecast(), nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(epochs):
        for series, values in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(model(series), values)  # <- TL409
            loss.backward()
            optimizer.step()
        print(epoch, float(loss))


main()
