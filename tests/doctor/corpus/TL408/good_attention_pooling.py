"""Multiple-instance learning: attention over the instances of one bag."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Bags(Dataset):
    def __init__(self, n=60):
        generator = torch.Generator().manual_seed(0)
        self.bags = [
            torch.randn(int(torch.randint(3, 9, (1,), generator=generator)), 6, generator=generator)
            for _ in range(n)
        ]

    def __len__(self):
        return len(self.bags)

    def __getitem__(self, index):
        bag = self.bags[index]
        return bag, (bag[:, 0].max() > 1.2).long()


class AttentionMIL(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(6, 16), nn.ReLU())
        self.attention = nn.Linear(16, 1)
        self.classifier = nn.Linear(16, 2)

    def forward(self, bag):
        instances = self.features(bag)
        weights = torch.softmax(self.attention(instances), dim=0)
        pooled = (weights * instances).sum(dim=0)
        return torch.log_softmax(self.classifier(pooled), dim=0)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Bags(), batch_size=1, shuffle=True)
    model = AttentionMIL()
    criterion = nn.NLLLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        correct = 0
        for bag, label in loader:
            log_probs = model(bag.squeeze(0))
            loss = criterion(log_probs, label.squeeze(0))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            correct += int(log_probs.argmax(dim=0) == label)
        print(epoch, correct / len(loader))


if __name__ == "__main__":
    main()
