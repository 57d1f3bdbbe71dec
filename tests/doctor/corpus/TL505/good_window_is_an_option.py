import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--gradient_accumulation_steps", type=int, default=2)
parser.add_argument("--num_train_epochs", type=int, default=2)
args = parser.parse_args([])

torch.manual_seed(0)
dataset = TensorDataset(torch.randn(64, 10), torch.randint(0, 4, (64,)))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for epoch in range(args.num_train_epochs):
    model.train()
    tr_loss = 0.0
    for step, (inputs, labels) in enumerate(loader):
        loss = criterion(model(inputs), labels)
        # With a window of one there is nothing to divide.
        if args.gradient_accumulation_steps > 1:
            loss = loss / args.gradient_accumulation_steps
        loss.backward()
        tr_loss += loss.item()
        if (step + 1) % args.gradient_accumulation_steps == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, tr_loss)
