import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Blobs(Dataset):
    def __init__(self, n=192, classes=3):
        generator = torch.Generator().manual_seed(3)
        self.y = torch.randint(0, classes, (n,), generator=generator)
        means = torch.randn(classes, 1, 8, 8, generator=generator)
        self.x = means[self.y] + 0.5 * torch.randn(n, 1, 8, 8, generator=generator)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, index):
        return {"image": self.x[index], "label": self.y[index]}


class ConvNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(8 * 4 * 4, classes)
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, image):
        hidden = self.conv(image)
        hidden = hidden.view(hidden.size(0), -1)
        return self.softmax(self.head(hidden))


class Trainer:
    def __init__(self, model, loader, lr=0.05):
        self.model = model
        self.loader = loader
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)

    def step(self, batch):
        prediction = self.model(batch["image"])
        loss = self.criterion(prediction.float(), batch["label"])  # <- TL401
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, epochs):
        self.model.train()
        for epoch in range(epochs):
            losses = [self.step(batch) for batch in self.loader]
            print(epoch, sum(losses) / len(losses))


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    trainer = Trainer(ConvNet(3), DataLoader(Blobs(), batch_size=32, shuffle=True))
    trainer.fit(3)
