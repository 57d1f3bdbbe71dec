import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Tagger(nn.Module):
    def __init__(self, words=60, tags=5):
        super().__init__()
        self.words = nn.Embedding(words, 16)
        self.memory = nn.GRU(16, 20, batch_first=True)
        self.tags = nn.Linear(20, tags)

    def forward(self, sentence):
        read = self.words(sentence)
        if self.training:
            read = nn.Dropout(0.3)(read)
        heard, _ = self.memory(read)
        return self.tags(heard)


def right(model, loader):
    model.eval()
    hits = count = 0
    with torch.no_grad():
        for sentence, tag in loader:
            hits += (model(sentence).argmax(-1) == tag).sum().item()
            count += tag.numel()
    return hits / count


torch.manual_seed(1)
sentences = torch.randint(60, (240, 7))
tags = sentences % 5
train_loader = DataLoader(TensorDataset(sentences[:200], tags[:200]), batch_size=25, shuffle=True)
val_loader = DataLoader(TensorDataset(sentences[200:], tags[200:]), batch_size=40)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(4):
    model.train()
    for sentence, tag in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(sentence).flatten(0, 1), tag.flatten())
        loss.backward()
        optimizer.step()
    print(epoch, right(model, val_loader))
