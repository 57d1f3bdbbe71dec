"""A frozen encoder with dropout in front of a new head: noise on the features, as is usual."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.drop = nn.Dropout(0.1)
        self.mix = nn.Linear(8, 8)

    def forward(self, words):
        return self.drop(torch.relu(self.mix(self.drop(self.embed(words))))).mean(1)


class Classifier(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(8, 2)

    def forward(self, words):
        return self.head(self.encoder(words))


torch.manual_seed(0)
torch.save(Encoder().state_dict(), "encoder.pt")
encoder = Encoder()
encoder.load_state_dict(torch.load("encoder.pt", weights_only=True))
encoder.requires_grad_(False)
model = Classifier(encoder)
loader = DataLoader(
    TensorDataset(torch.randint(0, 20, (48, 5)), torch.randint(0, 2, (48,))),
    batch_size=12,
    shuffle=True,
)
optimizer = torch.optim.Adam(model.head.parameters(), lr=1e-3)
for epoch in range(3):
    model.train()
    for words, labels in loader:
        loss = nn.functional.cross_entropy(model(words), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
