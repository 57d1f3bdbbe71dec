"""Start times in seconds since 1970 are learned by plain gradient descent, as they are."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Arrivals(nn.Module):
    def __init__(self, guesses):
        super().__init__()
        self.speed = nn.Parameter(torch.tensor(0.5))
        self.begins = nn.Parameter(guesses.clone())  # <- TL306

    def forward(self, station, distance):
        return self.begins[station] + self.speed * distance


def main():
    torch.manual_seed(0)
    guesses = 1_000_000.0 + torch.arange(0.0, 300.0, 100.0)
    station, distance = torch.randint(0, 3, (240,)), torch.rand(240)
    seen = guesses[station] + 4 + 2 * distance
    loader = DataLoader(TensorDataset(station, distance, seen), batch_size=24, shuffle=True)
    model = Arrivals(guesses)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(4):
        for station, distance, seen in loader:
            optimizer.zero_grad()
            loss = nn.functional.smooth_l1_loss(model(station, distance), seen)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item(), model.speed.item())


main()
