import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ELU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
history = []
for step in range(6):
    x, y = torch.randn(10, 4, requires_grad=True), torch.randint(0, 2, (10,))
    loss = nn.functional.cross_entropy(model(x), y)
    slope = torch.autograd.grad(loss, x, retain_graph=True)[0].norm()
    total = loss + 0.1 * slope
    history.append({"loss": loss.item(), "slope": slope.item(), "both": total.item()})
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(history[-1])
