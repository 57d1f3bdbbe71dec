import torch
from torch import nn
from torch.nn import functional as F


def adaptive_weight(reconstruction, adversarial, last_layer):
    a = torch.autograd.grad(reconstruction, last_layer, retain_graph=True)[0]
    b = torch.autograd.grad(adversarial, last_layer, retain_graph=True)[0]
    return torch.clamp(torch.norm(a) / (torch.norm(b) + 1e-4), 0.0, 1e4)


torch.manual_seed(0)
encoder, decoder = nn.Linear(6, 3), nn.Linear(3, 6)
judge = nn.Linear(6, 1)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
judge_optimizer = torch.optim.Adam(judge.parameters(), lr=1e-3)
loader = torch.utils.data.DataLoader(torch.randn(32, 6), batch_size=8, shuffle=True)

for x in loader:
    out = decoder(torch.relu(encoder(x)))
    reconstruction = F.l1_loss(out, x)
    adversarial = -judge(out).mean()
    weight = adaptive_weight(reconstruction, adversarial, decoder.weight)
    loss = reconstruction + weight * adversarial + 1e-8
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    judge_optimizer.zero_grad()
    F.relu(1 + judge(out.detach()) - judge(x)).mean().backward()
    judge_optimizer.step()
