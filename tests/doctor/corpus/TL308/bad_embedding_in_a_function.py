import torch
from torch import nn

torch.manual_seed(0)
VOCABULARY, WIDTH = 20, 6
classifier = nn.Linear(WIDTH, 2)
optimizer = torch.optim.Adam(classifier.parameters(), lr=0.01)


def embed(tokens):
    table = nn.Embedding(VOCABULARY, WIDTH)  # <- TL308
    return table(tokens).mean(dim=1)


i = 0
while i < 6:
    tokens, label = torch.randint(0, VOCABULARY, (8, 5)), torch.randint(0, 2, (8,))
    loss = nn.functional.cross_entropy(classifier(embed(tokens)), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    i += 1
