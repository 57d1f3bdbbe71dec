"""The usual meter, whose average is brought up to date for each batch, counts a batch as one sample."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class AverageMeter:
    """Computes and stores the average and the current value."""

    def __init__(self, name):
        self.name = name
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def validate(net, batches, every=2):
    top1 = AverageMeter("top-1")
    net.eval()
    with torch.no_grad():
        for step, (images, kinds) in enumerate(batches):
            right = net(images).argmax(dim=1) == kinds
            top1.update(right.float().mean().item())  # <- TL709
            if step % every == 0:
                print(f"{step}: {top1.val:.3f} ({top1.avg:.3f})")
    return top1.avg


def main():
    torch.manual_seed(2)
    images = torch.rand(500, 1, 6, 6)
    kinds = (images.mean(dim=(1, 2, 3)) > 0.5).long()
    net = nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.GELU(), nn.Linear(16, 2))
    train = DataLoader(TensorDataset(images[:384], kinds[:384]), batch_size=64, shuffle=True)
    held = DataLoader(TensorDataset(images[384:], kinds[384:]), batch_size=50)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    losses = AverageMeter("loss")
    for epoch in range(2):
        net.train()
        for batch, kind in train:
            loss = F.cross_entropy(net(batch), kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.update(loss.item(), len(batch))
        print(epoch, losses.avg, validate(net, held))


if __name__ == "__main__":
    main()
