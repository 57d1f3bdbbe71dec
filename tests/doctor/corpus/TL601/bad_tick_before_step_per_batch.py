import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)

epochs, batch_size = 3, 32
x = torch.randn(256, 10)
y = x @ torch.randn(10, 1)
train_loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True)

model = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
total_steps = epochs * len(train_loader)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / (total_steps + 1))
loss_fn = nn.MSELoss()

for epoch in range(epochs):
    for inputs, targets in train_loader:
        optimizer.zero_grad(set_to_none=True)
        loss = loss_fn(model(inputs), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scheduler.step()  # <- TL601
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.2e}")
