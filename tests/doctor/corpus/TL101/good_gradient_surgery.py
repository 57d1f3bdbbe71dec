"""Two tasks, one trunk: conflicting gradients are projected onto each other (PCGrad)."""
import torch
from torch import nn

torch.manual_seed(0)
trunk = nn.Linear(6, 8)
head_a, head_b = nn.Linear(8, 1), nn.Linear(8, 1)
params = [*trunk.parameters(), *head_a.parameters(), *head_b.parameters()]
optimizer = torch.optim.Adam(params, lr=1e-2)
mse = nn.MSELoss()


def grads():
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in params]


data = torch.utils.data.TensorDataset(torch.randn(64, 6), torch.randn(64, 1), torch.randn(64, 1))
for x, ya, yb in torch.utils.data.DataLoader(data, batch_size=16, shuffle=True):
    h = torch.relu(trunk(x))
    task_grads = []
    for loss in (mse(head_a(h), ya), mse(head_b(h), yb)):
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        task_grads.append(grads())
    optimizer.zero_grad()
    dot = sum((a * b).sum() for a, b in zip(*task_grads))
    for p, a, b in zip(params, *task_grads):
        if dot < 0:
            a = a - dot / (b.pow(2).sum() + 1e-8) * b
        p.grad = a + b
    optimizer.step()
