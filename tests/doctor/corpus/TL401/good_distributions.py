"""Distributions whose logits, log-probabilities and (as soft targets) probabilities are scored."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
teacher = nn.Linear(4, 3)
student = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
for step in range(12):
    x = torch.randn(32, 4)
    labels = torch.randint(0, 3, (32,))
    with torch.no_grad():
        wanted = Categorical(logits=teacher(x))
    given = Categorical(logits=student(x))
    soft = F.cross_entropy(student(x), wanted.probs)
    hard = F.nll_loss(given.probs.log(), labels)
    loss = soft + 0.1 * hard - 0.01 * given.entropy().mean() - 0.1 * given.log_prob(labels).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), given.probs.max().item())
