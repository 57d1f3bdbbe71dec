import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Tagger(nn.Module):
    """Attention over the sequence, then logits; probabilities only for whoever asks for them."""

    def __init__(self, dim=16, classes=3):
        super().__init__()
        self.embedding = nn.Embedding(30, dim)
        self.score = nn.Linear(dim, 1)
        self.fc = nn.Linear(dim, classes)
        self.softmax = nn.Softmax(dim=1)

    def forward(self, tokens):
        embedded = self.embedding(tokens)
        attention = torch.softmax(self.score(embedded).squeeze(-1), dim=1)
        pooled = (attention.unsqueeze(-1) * embedded).sum(dim=1)
        logits = self.fc(pooled)
        if self.training:
            return logits
        return self.softmax(logits)

    def predict_proba(self, tokens):
        return torch.softmax(self.fc(self.embedding(tokens).mean(dim=1)), dim=1)


def run_epoch(model, loader, criterion, optimizer):
    model.train()
    total = 0.0
    for tokens, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(tokens), labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * labels.size(0)
    return total / len(loader.dataset)


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    correct = sum((model(tokens).argmax(dim=1) == labels).sum().item() for tokens, labels in loader)
    return correct / len(loader.dataset)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    tokens = torch.randint(0, 30, (200, 8))
    labels = tokens[:, 0] % 3
    train_loader = DataLoader(TensorDataset(tokens[:160], labels[:160]), batch_size=20, shuffle=True)
    val_loader = DataLoader(TensorDataset(tokens[160:], labels[160:]), batch_size=20)
    model = Tagger()
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(3):
        print(epoch, run_epoch(model, train_loader, criterion, optimizer), accuracy(model, val_loader))
