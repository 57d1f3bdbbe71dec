import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Linear(6, 8)
heads = nn.ModuleList(nn.Linear(8, 3) for _ in range(2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD([*backbone.parameters(), *heads.parameters()], lr=0.1)
ds = torch.utils.data.TensorDataset(torch.randn(32, 6), torch.randint(0, 3, (32,)), torch.randint(0, 3, (32,)))
for x, color, shape in torch.utils.data.DataLoader(ds, batch_size=8, shuffle=True):
    optimizer.zero_grad()
    for head, target in zip(heads, (color, shape)):
        # one backward for each task: the sum is what is meant
        loss = criterion(head(torch.relu(backbone(x))), target)
        loss.backward()
    optimizer.step()
print(loss.item())
