"""How long the data set is, only the file knows."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Lines(Dataset):
    def __init__(self, path):
        self.rows = []
        with open(path) as file:
            for line in file:
                self.rows.append(torch.full((4,), float(len(line))))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index], index % 2


with open("lines.txt", "w") as file:
    file.write("a\n" * 8)
val = DataLoader(Lines("lines.txt"), batch_size=2)
net, total = nn.Linear(4, 2), 0.0
with torch.no_grad():
    for x, y in val:
        total += nn.functional.cross_entropy(net(x), y).item()
print(total / len(val))
