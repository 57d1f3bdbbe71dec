import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class AverageMeter(object):
    """Computes and stores the average and current value"""

    def __init__(self):
        self.reset()

    def reset(self):
        self.val = 0
        self.avg = 0
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def accuracy(output, target):
    return (output.argmax(1) == target).float().mean() * 100


def train(train_loader, model, optimizer, epoch):
    losses = AverageMeter()
    top1 = AverageMeter()
    model.train()
    for i, (images, target) in enumerate(train_loader):
        output = model(images)
        loss = F.cross_entropy(output, target)
        top1.update(accuracy(output, target).item(), images.size(0))
        losses.update(loss, images.size(0))  # <- TL204

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"Epoch {epoch}: loss {losses.avg:.4f} acc {top1.avg:.2f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    images, target = torch.randn(96, 3, 4, 4), torch.randint(0, 10, (96,))
    train_loader = DataLoader(TensorDataset(images, target), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    for epoch in range(2):
        train(train_loader, model, optimizer, epoch)
