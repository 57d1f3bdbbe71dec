import torch
import torch.nn as nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
data = TensorDataset(torch.randn(960, 16), torch.randint(0, 3, (960,)))
loader = DataLoader(data, sampler=BatchSampler(RandomSampler(data), 16, False), batch_size=None)
net = nn.Linear(16, 3).to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.1, fused=True)
for epoch in range(2):
    total = torch.zeros((), device=device)
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x.to(device)), y.to(device))
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.detach()
    print(epoch, total.item() / len(loader))
