import time

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Remote(Dataset):
    """Samples come over a network."""

    def __len__(self):
        return 640

    def __getitem__(self, index):
        time.sleep(0.002)
        x = torch.full((12,), float(index % 7))
        return x, x.sum().reshape(1)


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(  # <- TS101
        Remote(),
        batch_size=16,
        shuffle=True,
        num_workers=1,
    )
    net = torch.nn.Linear(12, 1)
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    for step, (x, y) in enumerate(train_loader):
        loss = F.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
