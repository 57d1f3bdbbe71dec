import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 2
torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randint(0, 3, (32,))), 8, shuffle=True)
model = nn.Linear(4, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
loss_function = nn.CrossEntropyLoss()

model.train()
for epoch in range(2):
    for i, (x, target) in enumerate(loader):
        loss = loss_function(model(x), target) / ACCUMULATE
        loss.backward()
        if (i + 1) % ACCUMULATE == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.step()  # <- TL109
            optimizer.zero_grad()
