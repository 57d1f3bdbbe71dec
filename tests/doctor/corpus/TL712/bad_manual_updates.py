import torch
from torch import nn

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
inputs, targets = torch.randn(40, 4), torch.randn(40, 1)
criterion, lr = nn.MSELoss(), 0.05


def train():
    model.train()
    for i in range(0, inputs.size(0), 8):
        torch.manual_seed(1111)  # <- TL712
        model.zero_grad()
        loss = criterion(model(inputs[i : i + 8]), targets[i : i + 8])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
    return loss.item()


for epoch in range(3):
    print(epoch, train())
