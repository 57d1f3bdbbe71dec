import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import clip_grad_norm_

model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.1)


def compute_gradients(x, y):
    opt.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    return loss.item()


def apply_gradients(max_norm):
    clip_grad_norm_(model.parameters(), max_norm)
    opt.step()


batches = [(torch.randn(8, 4), torch.randint(0, 2, (8,))) for _ in range(10)]
compute_gradients(*batches[0])
for x, y in batches[1:]:
    # the previous batch's gradients are applied first
    apply_gradients(1.0)
    print(compute_gradients(x, y))
apply_gradients(1.0)
