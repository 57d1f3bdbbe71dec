"""The critic steps with every batch, generator and both schedules with every fifth."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EVERY, EPOCHS = 5, 10
torch.manual_seed(1)
real_points = torch.randn(160, 2) * 0.3 + 1
loader = DataLoader(TensorDataset(real_points), batch_size=16, shuffle=True)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
for_generator = torch.optim.RMSprop(generator.parameters(), lr=5e-4)
for_critic = torch.optim.RMSprop(critic.parameters(), lr=5e-4)
slower = torch.optim.lr_scheduler.LambdaLR(for_critic, lambda i: 1 - i / 20)
slowing = torch.optim.lr_scheduler.LinearLR(for_generator, 1.0, 0.01, total_iters=20)
seen = 0
for epoch in range(EPOCHS):
    for (real,) in loader:
        made = generator(torch.randn(len(real), 4)).detach()
        loss = critic(made).mean() - critic(real).mean()
        for_critic.zero_grad()
        loss.backward()
        for_critic.step()
        with torch.no_grad():
            for weight in critic.parameters():
                weight.clamp_(-0.1, 0.1)
        seen += 1
        if seen % EVERY == 0:
            fooled = -critic(generator(torch.randn(16, 4))).mean()
            for_generator.zero_grad()
            fooled.backward()
            for_generator.step()
            slower.step()
            slowing.step()
