import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = torch.device("cpu")


class Rows(Dataset):
    def __init__(self):
        self.x, self.y = torch.randn(16, 4), torch.randn(16)

    def __getitem__(self, i):
        sample = {}
        sample["features"] = self.x[i]
        sample["label"] = self.y[i]
        return sample

    def __len__(self):
        return 16


torch.manual_seed(0)
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
samples, running = 0, 0.0
for step, data in enumerate(DataLoader(Rows(), batch_size=4, shuffle=True)):
    data = {key: value.to(device) for key, value in data.items()}
    loss = nn.functional.l1_loss(model(data["features"]).squeeze(1), data["label"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    n = len(data)  # <- TL721
    running += n * loss.item()
    samples += n
print(running / samples)
