import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Clips(Dataset):
    """Large samples, read as whole batches."""

    def __init__(self, batches, size):
        self.clips = torch.randn(size)
        self.batches = batches

    def __len__(self):
        return self.batches

    def __getitem__(self, index):
        return self.clips


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
size = 8_000_000 if device.type == "cuda" else 8_000
loader = DataLoader(Clips(100, size), batch_size=None)
model = nn.Linear(1000, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, fused=True)
for clips in loader:
    clips = clips.to(device, non_blocking=True)  # <- TS103
    loss = model(clips.view(-1, 1000)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
