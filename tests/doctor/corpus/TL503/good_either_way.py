import torch
from torch import nn


def train(model, loader, optimizer, scaler=None, epochs=2):
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16, enabled=scaler is not None):
                loss = nn.functional.cross_entropy(model(x), y)
            if scaler is not None:
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
            else:
                loss.backward()
                optimizer.step()
    return loss.item()


torch.manual_seed(0)
ds = torch.utils.data.TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,)))
loader = torch.utils.data.DataLoader(ds, batch_size=8, shuffle=True)
for scaler in (None, torch.amp.GradScaler("cpu", init_scale=64.0)):
    model = nn.Linear(4, 2)
    print(train(model, loader, torch.optim.SGD(model.parameters(), lr=0.1), scaler))
