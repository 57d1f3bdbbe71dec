import torch
from torch import nn

torch.manual_seed(0)
x = torch.linspace(0, 4, 40).unsqueeze(1)
y = torch.sin(x)
seq = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.LBFGS(seq.parameters(), lr=0.8, max_iter=5)

for i in range(6):
    print('STEP: ', i)

    def closure():
        optimizer.zero_grad()
        out = seq(x)
        loss = criterion(out, y)
        print('loss:', loss.item())
        loss.backward()
        return loss

    optimizer.step(closure)
