import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs, classes = torch.randn(96, 5), torch.randint(0, 3, (96,))
train_set = DataLoader(TensorDataset(inputs[:64], classes[:64]), 16, shuffle=True)
test_set = DataLoader(TensorDataset(inputs[64:], classes[64:]), 16)
net = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 3))
adam = optim.Adam(net.parameters())


def uncertainty_on_test(passes=10):
    net.train()  # dropout on: each pass is a draw from the posterior
    right, entropy = 0, 0.0
    with torch.no_grad():
        for x, y in test_set:
            p = sum(F.softmax(net(x), dim=1) for _ in range(passes)) / passes
            right += (p.argmax(1) == y).sum().item()
            entropy -= (p * p.log()).sum().item()
    return right / len(test_set.dataset), entropy / len(test_set.dataset)


for epoch in range(2):
    net.train()
    for x, y in train_set:
        adam.zero_grad()
        F.cross_entropy(net(x), y).backward()
        adam.step()
    print(epoch, uncertainty_on_test())
