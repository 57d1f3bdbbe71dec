import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

torch.manual_seed(0)
x = torch.randn(3600, 10)
data = TensorDataset(x, (x[:, 0] > 0).long())
batches = BatchSampler(RandomSampler(data), batch_size=64, drop_last=False)
loader = DataLoader(data, sampler=batches, batch_size=None)
model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
for epoch in range(2):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
