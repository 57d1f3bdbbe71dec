"""Full-batch gradient descent: the gradient of the whole set is gathered piece by piece."""
import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(100, 4), torch.randn(100, 1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=25, shuffle=True)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.MSELoss(reduction="sum")
for epoch in range(5):
    optimizer.zero_grad()
    total = 0.0
    for xb, yb in loader:
        loss = loss_fn(model(xb), yb) / len(x)
        loss.backward()
        total += loss.item()
    optimizer.step()
    print(epoch, total)
