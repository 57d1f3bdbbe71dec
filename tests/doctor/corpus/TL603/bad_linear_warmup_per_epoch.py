import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import LinearLR
from torch.utils.data import DataLoader, TensorDataset


class TextCNN(nn.Module):
    def __init__(self, vocab=50, classes=3):
        super().__init__()
        self.embedding = nn.Embedding(vocab, 16)
        self.conv = nn.Conv1d(16, 16, 3)
        self.fc = nn.Linear(16, classes)

    def forward(self, tokens):
        x = self.embedding(tokens).transpose(1, 2)
        return self.fc(F.relu(self.conv(x)).amax(dim=2))


def fit(model, train_loader, max_epochs, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    num_training_steps = len(train_loader) * max_epochs
    scheduler = LinearLR(optimizer, 1.0, 0.0, total_iters=num_training_steps)
    for epoch in range(max_epochs):
        model.train()
        for batch in train_loader:
            tokens, labels = batch
            optimizer.zero_grad()
            loss = F.cross_entropy(model(tokens), labels)
            loss.backward()
            optimizer.step()
        scheduler.step()  # <- TL603
        print(f"epoch {epoch}: loss {loss.item():.4f}")


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    tokens = torch.randint(0, 50, (160, 10))
    labels = tokens[:, 0] % 3
    loader = DataLoader(TensorDataset(tokens, labels), batch_size=16, shuffle=True)
    fit(TextCNN(), loader, max_epochs=3, lr=1e-3)


if __name__ == "__main__":
    main()
