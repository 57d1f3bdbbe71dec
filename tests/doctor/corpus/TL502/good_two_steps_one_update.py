import torch
import torch.nn as nn

torch.manual_seed(0)
net0, net1 = nn.Linear(4, 4), nn.Linear(4, 1)
opt0 = torch.optim.SGD(net0.parameters(), lr=0.01)
opt1 = torch.optim.SGD(net1.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
mse = nn.MSELoss()
for epoch in range(2):
    for x in torch.randn(6, 8, 4):
        opt0.zero_grad()
        opt1.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            h = net0(x)
            loss0 = mse(h.float(), x)
            loss1 = mse(net1(h).float(), x.sum(1, keepdim=True))
        scaler.scale(loss0).backward(retain_graph=True)
        scaler.scale(loss1).backward()
        scaler.step(opt0)
        scaler.step(opt1)
        scaler.update()
    print(loss0.item(), loss1.item())
