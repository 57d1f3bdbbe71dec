from collections import UserDict

import torch
from torch import nn
from torch.utils.data import DataLoader


class Batch(UserDict):
    def __len__(self):
        return len(self.data["y"])


def collate(samples):
    return Batch(x=torch.stack([x for x, _ in samples]), y=torch.tensor([y for _, y in samples]))


torch.manual_seed(0)
pairs = [(torch.randn(4), i % 2) for i in range(12)]
model = nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters())
correct = count = 0
for batch in DataLoader(pairs, batch_size=4, shuffle=True, collate_fn=collate):
    logits = model(batch["x"])
    loss = nn.functional.cross_entropy(logits, batch["y"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    correct += (logits.argmax(1) == batch["y"]).sum().item()
    count += len(batch)
print(correct / count)
