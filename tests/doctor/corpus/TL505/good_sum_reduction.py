import torch
import torch.nn as nn

torch.manual_seed(0)
N_ACCUM = 4
x, y = torch.randn(64, 5), torch.randn(64, 1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=4, shuffle=True)
net = nn.Linear(5, 1)
criterion = nn.MSELoss(reduction="sum")
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
for i, (xb, yb) in enumerate(loader):
    criterion(net(xb), yb).backward()
    if (i + 1) % N_ACCUM == 0:
        optimizer.step()
        optimizer.zero_grad()
