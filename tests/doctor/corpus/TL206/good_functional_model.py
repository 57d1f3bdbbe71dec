# A model of plain functions, without any nn.Module: it is called with dropout in training only.
import torch
import torch.nn.functional as F

torch.manual_seed(0)
w1 = (torch.randn(5, 24) * 0.4).requires_grad_()
w2 = (torch.randn(24, 2) * 0.2).requires_grad_()
x, y = torch.randn(80, 5), torch.randint(0, 2, (80,))


def predict(x, p_drop=0.0):
    h = F.relu(x @ w1)
    if p_drop:
        h = F.dropout(h, p_drop)
    return h @ w2


optimizer = torch.optim.SGD([w1, w2], lr=0.1, momentum=0.9)
for step in range(20):
    optimizer.zero_grad()
    loss = F.cross_entropy(predict(x, p_drop=0.5), y)
    loss.backward()
    optimizer.step()
with torch.no_grad():
    print("accuracy", (predict(x).argmax(1) == y).float().mean().item())
