import torch
from torch import nn
from torch.utils.data import DataLoader


def collate(samples):
    images = torch.stack([image for image, _ in samples])
    targets = torch.tensor([target for _, target in samples])
    return {"image": images, "target": targets}


def evaluate(net, loader):
    net.eval()
    correct, count = 0, 0
    with torch.no_grad():
        for batch in loader:
            hits = net(batch["image"]).argmax(dim=1) == batch["target"]
            correct += hits.sum().item()
            count += len(batch)  # <- TL721
    net.train()
    return correct / count


torch.manual_seed(0)
data = [(torch.randn(1, 4, 4), i % 3) for i in range(18)]
train, val = (
    DataLoader(data[:12], 4, True, collate_fn=collate),
    DataLoader(data[12:], 3, collate_fn=collate),
)
net = nn.Sequential(nn.Flatten(), nn.Dropout(0.1), nn.Linear(16, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for batch in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(batch["image"]), batch["target"]).backward()
        optimizer.step()
    print(evaluate(net, val))
