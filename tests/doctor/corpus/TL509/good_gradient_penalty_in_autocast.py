"""The penalty's gradient norm is taken in autocast; backward and step stand outside."""
import torch
import torch.nn as nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
for real in torch.utils.data.DataLoader(torch.randn(48, 2), batch_size=16, shuffle=True):
    fake = torch.randn_like(real)
    mixed = (real + torch.rand(len(real), 1) * (fake - real)).requires_grad_()
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = critic(fake).mean() - critic(real).mean()
        score = critic(mixed).sum()
        (slope,) = torch.autograd.grad(scaler.scale(score), mixed, create_graph=True)
        slope = slope / scaler.get_scale()
        loss = loss.float() + 10 * (slope.norm(dim=1) - 1).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
print(loss.item())
