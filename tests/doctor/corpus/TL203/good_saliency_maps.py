import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# Input gradients of a trained model, over the validation set.

torch.manual_seed(0)
inputs = torch.randn(80, 9)
labels = (inputs[:, 0] + inputs[:, 1] > 0).long()
train_dl = DataLoader(TensorDataset(inputs[:64], labels[:64]), batch_size=16, shuffle=True)
val_dl = DataLoader(TensorDataset(inputs[64:], labels[64:]), batch_size=16)
model = nn.Sequential(nn.Linear(9, 24), nn.SiLU(), nn.Dropout(0.1), nn.Linear(24, 2))
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)

model.train()
for epoch in range(3):
    for x, y in train_dl:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        opt.step()

model.eval()
saliency = []
for x, y in val_dl:
    x = x.clone().requires_grad_(True)
    scores = model(x)
    chosen = scores.gather(1, y.unsqueeze(1)).sum()
    (gradient,) = torch.autograd.grad(chosen, x)
    saliency.append(gradient.abs())
print("most important input:", torch.cat(saliency).mean(0).argmax().item())
