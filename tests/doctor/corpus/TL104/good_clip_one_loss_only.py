"""The adversarial gradient is bounded on its own; the reconstruction gradient is not."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 6))
critic = nn.Linear(6, 1)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
optimizer_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
mse = nn.MSELoss()
loader = torch.utils.data.DataLoader(torch.randn(64, 6), batch_size=16, shuffle=True)

for x in loader:
    optimizer.zero_grad()
    out = net(x)
    adv = -critic(out).mean()
    adv.backward(retain_graph=True)
    nn.utils.clip_grad_norm_(net.parameters(), 0.1)
    rec = mse(out, x)
    rec.backward()
    optimizer.step()

    optimizer_critic.zero_grad()
    loss_critic = critic(out.detach()).mean() - critic(x).mean()
    loss_critic.backward()
    nn.utils.clip_grad_value_(critic.parameters(), 0.5)
    optimizer_critic.step()
print(rec.item(), loss_critic.item())
