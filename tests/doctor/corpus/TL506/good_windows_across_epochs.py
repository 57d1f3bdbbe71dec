import torch
import torch.nn as nn

torch.manual_seed(0)
accumulate, micro_step = 3, 0
ds = torch.utils.data.TensorDataset(torch.randn(40, 5), torch.randn(40, 1))
loader = torch.utils.data.DataLoader(ds, batch_size=8, shuffle=True)
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
optimizer.zero_grad()
for epoch in range(3):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y) / accumulate
        loss.backward()
        micro_step += 1
        # counted over the whole run: every window is whole, wherever an epoch ends
        if micro_step % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item())
