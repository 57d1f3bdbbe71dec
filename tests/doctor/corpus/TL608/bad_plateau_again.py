import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x, y = torch.randn(64, 4), torch.randn(64, 1)
held_x, held_y = torch.randn(32, 4), torch.randn(32, 1)
regressor = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
sgd = torch.optim.SGD(regressor.parameters(), lr=0.1)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(sgd, patience=2)

for epoch in range(8):
    regressor.train()
    for start in range(0, len(x), 16):
        sgd.zero_grad()
        nn.functional.mse_loss(regressor(x[start : start + 16]), y[start : start + 16]).backward()
        sgd.step()
    regressor.eval()
    with torch.no_grad():
        score = nn.functional.mse_loss(regressor(held_x), held_y).item()
    plateau.step(score)
    print(epoch, score)
    plateau.step(score)  # <- TL608
