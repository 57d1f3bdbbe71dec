"""In each fold the training images should be shifted, and the validation images not."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


class Signals(Dataset):
    def __init__(self, values, labels):
        self.values, self.labels, self.transform = values, labels, None

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.transform(self.values[index]), self.labels[index]


class Shift:
    def __init__(self, most):
        self.most = most

    def __call__(self, x):
        return x.roll(int(torch.randint(-self.most, self.most + 1, ())))


def score(model, loader):
    model.eval()
    with torch.no_grad():
        return sum(int((model(x).argmax(1) == y).sum()) for x, y in loader)


torch.manual_seed(0)
whole = Signals(torch.randn(120, 16), torch.randint(0, 2, (120,)))
order = torch.randperm(len(whole))
for fold in range(3):
    held_out = order[fold::3].tolist()
    rest = [i for i in order.tolist() if i not in held_out]
    training, checking = Subset(whole, rest), Subset(whole, held_out)
    training.dataset.transform = Shift(3)
    checking.dataset.transform = torch.Tensor.float  # <- TL713
    train_loader = DataLoader(training, batch_size=16, shuffle=True)
    model = nn.Linear(16, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(2):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    print(fold, score(model, DataLoader(checking, batch_size=16)) / len(checking))
