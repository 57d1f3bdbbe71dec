import torch
import torch.nn as nn


class Reader(nn.Module):
    def __init__(self, words, size, topics):
        super().__init__()
        self.words = nn.EmbeddingBag(words, size)
        self.topics = nn.Linear(size, topics)

    def forward(self, text):
        return nn.functional.log_softmax(self.topics(self.words(text)), dim=0)  # <- TL408


def texts(per_topic, topics=4, words=60):
    found, named = [], []
    for topic in range(topics):
        found.append(torch.randint(topic * 10, topic * 10 + 30, (per_topic, 12)))
        named.append(torch.full((per_topic,), topic))
    return torch.cat(found), torch.cat(named)


def epoch_of(model, optimizer, x, y, size=24):
    total = 0.0
    for part in torch.split(torch.randperm(x.shape[0]), size):
        optimizer.zero_grad()
        loss = nn.functional.nll_loss(model(x[part]), y[part])
        loss.backward()
        optimizer.step()
        total += loss.item() * part.numel()
    return total / x.shape[0]


torch.manual_seed(8)
x, y = texts(48)
model = Reader(60, 12, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(3):
    print(epoch, epoch_of(model, optimizer, x, y))
