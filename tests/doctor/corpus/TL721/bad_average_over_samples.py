import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Tokens(Dataset):
    def __init__(self, n):
        self.ids = torch.randint(0, 20, (n, 6))
        self.labels = torch.randint(0, 3, (n,))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.labels[i]}


torch.manual_seed(0)
loader = DataLoader(Tokens(24), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Embedding(20, 8), nn.Flatten(), nn.Linear(48, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(2):
    total, seen = 0.0, 0
    for batch in loader:
        loss = nn.functional.cross_entropy(model(batch["input_ids"]), batch["labels"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)  # <- TL721
        seen += batch["labels"].shape[0]
    print(total / seen)
