import argparse
import math

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--log-interval", type=int, default=20)
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args([])

torch.manual_seed(1)
ntokens, bptt = 30, 8
train_data = torch.randint(0, ntokens, (200, 4))
model = nn.Sequential(nn.Embedding(ntokens, 16), nn.Linear(16, ntokens))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def get_batch(source, i):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].view(-1)


def train():
    model.train()
    total_loss = 0.0
    for batch, i in enumerate(range(0, train_data.size(0) - 1, bptt)):
        data, targets = get_batch(train_data, i)
        optimizer.zero_grad()
        loss = criterion(model(data).view(-1, ntokens), targets)
        loss.backward()
        optimizer.step()

        total_loss += loss  # <- TL204
        if batch % args.log_interval == 0 and batch > 0:
            cur_loss = total_loss.item() / args.log_interval
            print(f"loss {cur_loss:5.2f} | ppl {math.exp(cur_loss):8.2f}")
            total_loss = 0


for epoch in range(args.epochs):
    train()
