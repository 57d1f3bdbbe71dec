"""No epochs here: each turn of the loop is one update on all the data."""

import torch
import torch.nn as nn

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.linspace(-3, 3, 100).unsqueeze(1)
y = torch.sin(x)

net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=100, gamma=0.5)
loss_fn = nn.MSELoss()

epochs = 300
for epoch in range(epochs):
    prediction = net(x)
    loss = loss_fn(prediction, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if epoch % 100 == 0:
        print(epoch, loss.item())
