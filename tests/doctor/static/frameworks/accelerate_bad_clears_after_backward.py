import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader

from corpus import reviews

accelerator = Accelerator(mixed_precision="bf16")
net = nn.Sequential(nn.Linear(300, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-4)
loader = DataLoader(reviews("train"), batch_size=32, shuffle=True)
net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
for epoch in range(4):
    for words, label in loader:
        loss = nn.functional.cross_entropy(net(words), label)
        accelerator.backward(loss)
        optimizer.zero_grad()  # <- TL101
        optimizer.step()
