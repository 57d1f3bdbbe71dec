import torch
from torch import nn
from torch.nn import functional as F


class GanTrainer:
    def __init__(self, gen, disc, lr=1e-3):
        self.gen, self.disc = gen, disc
        self.opt_g = torch.optim.Adam(gen.parameters(), lr=lr)
        self.opt_d = torch.optim.Adam(disc.parameters(), lr=lr)

    def generator_step(self, count):
        self.opt_g.zero_grad()
        logits = self.disc(self.gen(torch.randn(count, 2)))
        loss = F.binary_cross_entropy_with_logits(logits, torch.ones(count, 1))
        loss.backward()
        self.opt_g.step()
        return loss.item()

    def discriminator_step(self, real):
        with torch.no_grad():
            fake = self.gen(torch.randn(len(real), 2))
        good = F.binary_cross_entropy_with_logits(self.disc(real), torch.ones(len(real), 1))
        bad = F.binary_cross_entropy_with_logits(self.disc(fake), torch.zeros(len(real), 1))
        (good + bad).backward()  # <- TL110
        self.opt_d.step()
        return (good + bad).item()

    def train(self, loader, epochs):
        for epoch in range(epochs):
            for real in loader:
                self.opt_d.zero_grad()
                g = self.generator_step(len(real))
                d = self.discriminator_step(real)
            print(f"{epoch}: {g:.3f} {d:.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    GanTrainer(nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))).train(
        torch.utils.data.DataLoader(torch.randn(48, 3), batch_size=12), epochs=3
    )
