import torch
import torch.nn as nn

torch.manual_seed(0)
ACCUM = 4
ds = torch.utils.data.TensorDataset(torch.randn(100, 6), torch.randint(0, 3, (100,)))
loader = torch.utils.data.DataLoader(ds, batch_size=10, shuffle=True)
model = nn.Linear(6, 3)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y) / ACCUM
        loss.backward()
        if (i + 1) % ACCUM == 0 or (i + 1) == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item())
