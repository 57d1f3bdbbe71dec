import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = torch.randn(48, 5), torch.randint(0, 2, (48,))
train = DataLoader(TensorDataset(x[:32], y[:32]), batch_size=8, shuffle=True)
val = DataLoader(TensorDataset(x[32:], y[32:]), batch_size=8)
model = nn.Linear(5, 2)
optimizer = torch.optim.AdamW(model.parameters())
for epoch in range(2):
    for inputs, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    accuracy = 0.0
    with torch.no_grad():
        for inputs, labels in val:
            accuracy = accuracy + (model(inputs).argmax(1) == labels).float().mean().item()
    print(accuracy / len(val.dataset))  # <- TL720
