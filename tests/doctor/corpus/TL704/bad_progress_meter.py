import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class ProgressMeter:
    def __init__(self, num_batches, prefix=""):
        self.batch_fmtstr = self._get_batch_fmtstr(num_batches)
        self.prefix = prefix

    def display(self, batch, loss):
        print("\t".join([self.prefix + self.batch_fmtstr.format(batch), str(loss)]))

    def _get_batch_fmtstr(self, num_batches):
        num_digits = len(str(num_batches // 1))
        fmt = "{:" + str(num_digits) + "d}"
        return "[" + fmt + "/" + fmt.format(num_batches) + "]"


def train(train_loader, model, criterion, optimizer, epoch):
    progress = ProgressMeter(len(train_loader), prefix="Epoch: [{}]".format(epoch))
    model.train()
    for i, (images, target) in enumerate(train_loader):  # <- TL704
        loss = criterion(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 2 == 0:
            progress.display(i + 1, loss.item())


def main():
    torch.manual_seed(0)
    dataset = TensorDataset(torch.randn(48, 8), torch.randint(0, 3, (48,)))
    train_sampler = DistributedSampler(dataset, num_replicas=1, rank=0)
    train_loader = DataLoader(
        dataset, batch_size=8, shuffle=(train_sampler is None), sampler=train_sampler
    )
    model = nn.Linear(8, 3)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(3):
        train(train_loader, model, criterion, optimizer, epoch)


if __name__ == "__main__":
    main()
