"""A counter in a loop of unknown length is not a length of three."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Table(Dataset):
    def __init__(self, path):
        self.size = 0
        for _ in open(path):
            self.size += 1
        self.x = torch.randn(self.size, 4)

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return self.x[index], torch.tensor(0.0)


with open("table.csv", "w") as file:
    file.write("1,2\n" * 8)
model, losses = nn.Linear(4, 1), []
for x, y in DataLoader(Table("table.csv"), batch_size=4):
    with torch.no_grad():
        losses.append(nn.functional.mse_loss(model(x).squeeze(1), y).item())
print(sum(losses) / len(losses))
