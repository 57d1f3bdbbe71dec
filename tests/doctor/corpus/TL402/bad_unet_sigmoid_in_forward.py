import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Circles(Dataset):
    """Noisy images of one disc each, with its mask."""

    def __init__(self, n=64, size=16, seed=0):
        g = torch.Generator().manual_seed(seed)
        centre = torch.randint(4, size - 4, (n, 2, 1, 1), generator=g)
        grid = torch.stack(torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij"))
        inside = ((grid[None] - centre) ** 2).sum(dim=1, keepdim=True) < 12
        self.masks = inside.float()
        self.images = self.masks + 0.5 * torch.randn(n, 1, size, size, generator=g)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.masks[i]


class TinyUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(1, 8, 3, padding=1)
        self.mid = nn.Conv2d(8, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.outc = nn.Conv2d(16, 1, 1)

    def forward(self, x):
        skip = F.relu(self.down(x))
        inner = F.relu(self.mid(F.max_pool2d(skip, 2)))
        merged = torch.cat([skip, self.up(inner)], dim=1)
        return torch.sigmoid(self.outc(merged))


def train_net(net, loader, epochs=2, lr=1e-2):
    optimizer = torch.optim.RMSprop(net.parameters(), lr=lr)
    criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([4.0]))
    for epoch in range(epochs):
        net.train()
        epoch_loss = 0.0
        for imgs, true_masks in loader:
            masks_pred = net(imgs)
            loss = criterion(masks_pred.view(-1), true_masks.view(-1))  # <- TL402
            epoch_loss += loss.item()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("Epoch", epoch, "finished, loss", epoch_loss / len(loader))


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train_net(TinyUNet(), DataLoader(Circles(), batch_size=16, shuffle=True))
