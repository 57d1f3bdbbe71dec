import torch
from torch import nn


def encoder(words):
    return nn.Sequential(words, nn.Flatten(), nn.Linear(20, 4))


torch.manual_seed(3)
words = nn.Embedding(25, 4)
query, document = encoder(words), encoder(words)
optimizers = {
    "query": torch.optim.SGD(query.parameters(), lr=0.05),
    "document": torch.optim.SGD(document.parameters(), lr=0.05),  # <- TL311
}
for _ in range(8):
    asked, found = torch.randint(0, 25, (6, 5)), torch.randint(0, 25, (6, 5))
    for each in optimizers.values():
        each.zero_grad()
    scores = query(asked) @ document(found).T
    nn.functional.cross_entropy(scores, torch.arange(6)).backward()
    optimizers["query"].step()
    optimizers["document"].step()
