import torch
import torch.nn as nn

torch.manual_seed(0)


class WGAN:
    def __init__(self):
        self.G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        self.D = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
        self.g_optimizer = torch.optim.RMSprop(self.G.parameters(), lr=5e-5)
        self.d_optimizer = torch.optim.RMSprop(self.D.parameters(), lr=5e-5)

    def train(self, loader, epochs):
        for epoch in range(epochs):
            for images in loader:
                z = torch.randn(images.size(0), 4)
                self.d_optimizer.zero_grad()
                d_loss = self.D(self.G(z).detach()).mean() - self.D(images).mean()
                d_loss.backward()
                self.d_optimizer.step()
                for p in self.D.parameters():
                    p.data.clamp_(-0.01, 0.01)

                self.g_optimizer.zero_grad()
                g_loss = -self.D(self.G(z)).mean()
                g_loss.backward()  # <- TL106
            print(epoch, d_loss.item(), g_loss.item())


WGAN().train(torch.utils.data.DataLoader(torch.randn(64, 2), batch_size=16, shuffle=True), epochs=2)
