import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x):
        y = self.down(torch.relu(self.up(x)))
        return nn.LayerNorm(y.size()[1:])(x + y)  # <- TL308


def main():
    torch.manual_seed(0)
    blocks = nn.Sequential(Block(), nn.Linear(4, 2))
    optimizer = torch.optim.AdamW(blocks.parameters())
    for _ in range(6):
        x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
        loss = nn.functional.cross_entropy(blocks(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
