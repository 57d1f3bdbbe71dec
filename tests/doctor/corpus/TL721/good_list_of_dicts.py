import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
images = [{"image": torch.randn(3, 4, 4), "boxes": torch.rand(1 + i % 2, 4)} for i in range(8)]
net = nn.Conv2d(3, 4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for batch in DataLoader(images, batch_size=4, shuffle=True, collate_fn=list):
    losses = []
    for sample in batch:
        found = net(sample["image"][None]).flatten()
        losses.append((found - sample["boxes"].mean(dim=0)).abs().sum())
    loss = sum(losses) / len(batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
