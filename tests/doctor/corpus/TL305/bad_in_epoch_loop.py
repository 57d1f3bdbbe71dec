import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--lr", type=float, default=2e-3)
args = parser.parse_args()

torch.manual_seed(0)
tokens = torch.randint(0, 20, (96, 9))
loader = DataLoader(TensorDataset(tokens[:, :-1], tokens[:, 1:]), batch_size=16, shuffle=True)
embedding = nn.Embedding(20, 12)
rnn = nn.LSTM(12, 24, batch_first=True)
decoder = nn.Linear(24, 20)
model = nn.ModuleList([embedding, rnn, decoder])
criterion = nn.CrossEntropyLoss()

for epoch in range(args.epochs):
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)  # <- TL305
    for source, target in loader:
        output, _ = rnn(embedding(source))
        loss = criterion(decoder(output).reshape(-1, 20), target.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.3f}")
