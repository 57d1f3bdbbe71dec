import torch
from torch import nn


class Trainer:
    def __init__(self, model, train_loader, lr):
        self.model = model
        self.train_loader = train_loader
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr, nesterov=True, momentum=0.9)
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    def run_batch(self, images, targets):
        self.model.zero_grad()
        loss = self.criterion(self.model(images), targets)
        loss.backward()
        return loss.item()

    def run_epoch(self, epoch):
        losses = []
        for images, targets in self.train_loader:
            losses.append(self.run_batch(images, targets))
        self.optimizer.step()  # <- TL107
        print(f"[epoch {epoch}] loss {sum(losses) / len(losses):.4f}")

    def train(self, max_epochs):
        for epoch in range(max_epochs):
            self.run_epoch(epoch)


def main():
    torch.manual_seed(0)
    dataset = torch.utils.data.TensorDataset(torch.randn(40, 3, 4, 4), torch.randint(0, 2, (40,)))
    loader = torch.utils.data.DataLoader(dataset, batch_size=10, shuffle=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, 2))
    Trainer(model, loader, lr=0.05).train(max_epochs=3)


if __name__ == "__main__":
    main()
