import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Words(Dataset):
    vocabulary = 20

    def __len__(self):
        return 60

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        tokens = torch.randint(self.vocabulary, (9,), generator=generator)
        return tokens[:-1], tokens[1:]


class Trainer:
    def __init__(self, data):
        self.model = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 20))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.batches = DataLoader(data, 10, shuffle=True, num_workers=1)  # <- TS104

    def epoch(self):
        for inputs, targets in self.batches:
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(inputs).flatten(0, 1), targets.flatten())
            loss.backward()
            self.optimizer.step()
        return loss.item()

    def run(self, epochs):
        for epoch in range(epochs):
            print(epoch, self.epoch())


if __name__ == "__main__":
    torch.manual_seed(0)
    Trainer(Words()).run(8)
