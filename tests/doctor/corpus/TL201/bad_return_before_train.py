import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class TextCNN(nn.Module):
    def __init__(self, vocab_size=50, embed_dim=16, num_class=4):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.conv = nn.Conv1d(embed_dim, 24, kernel_size=3)
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(24, num_class)

    def forward(self, text):
        embedded = self.embedding(text).transpose(1, 2)
        pooled = F.relu(self.conv(embedded)).amax(dim=2)
        return self.fc(self.drop(pooled))


def evaluate(model, dataloader, criterion):
    model.eval()
    total_acc, total_loss, total_count = 0, 0.0, 0
    with torch.no_grad():
        for text, label in dataloader:
            output = model(text)
            total_loss += criterion(output, label).item() * label.size(0)
            total_acc += (output.argmax(1) == label).sum().item()
            total_count += label.size(0)
    return total_loss / total_count, total_acc / total_count
    model.train()


def run(epochs=2):
    torch.manual_seed(0)
    text, labels = torch.randint(0, 50, (128, 12)), torch.randint(0, 4, (128,))
    train_iter = DataLoader(TensorDataset(text[:96], labels[:96]), 16, shuffle=True)
    valid_iter = DataLoader(TensorDataset(text[96:], labels[96:]), 16)
    model = TextCNN()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model.train()
    for epoch in range(epochs):
        for text, label in train_iter:
            optimizer.zero_grad()
            predicted = model(text)  # <- TL201
            loss = criterion(predicted, label)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
        val_loss, val_acc = evaluate(model, valid_iter, criterion)
        print("| end of epoch {:3d} | valid loss {:.3f} | acc {:.3f}".format(epoch, val_loss, val_acc))


run()
