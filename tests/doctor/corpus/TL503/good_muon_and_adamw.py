import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(256, 8); y = (x[:, 0] > 0).long()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=16, shuffle=True)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(8, 32)
        self.hidden = nn.Linear(32, 32)
        self.head = nn.Linear(32, 2)
    def forward(self, x):
        return self.head(torch.relu(self.hidden(torch.relu(self.enter(x)))))
model = Net()
hidden = [model.enter.weight, model.hidden.weight]
others = [model.enter.bias, model.hidden.bias, *model.head.parameters()]
muon = torch.optim.Muon(hidden, lr=0.01)
adamw = torch.optim.AdamW(others, lr=1e-3)
epochs = 3
schedulers = [torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=epochs * len(loader)) for o in (muon, adamw)]
criterion = nn.CrossEntropyLoss()
scaler = torch.amp.GradScaler("cpu")
model.train()
for epoch in range(epochs):
    for inputs, targets in loader:
        muon.zero_grad()
        adamw.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = criterion(model(inputs), targets)
        scaler.scale(loss).backward()
        scaler.unscale_(muon)
        scaler.unscale_(adamw)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(muon)
        scaler.step(adamw)
        scaler.update()
        for scheduler in schedulers:
            scheduler.step()
