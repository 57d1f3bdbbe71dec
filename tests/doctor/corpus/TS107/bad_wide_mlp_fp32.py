import torch
import torch.nn as nn
import torch.nn.functional as F


def make(width):
    return nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1))


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    width = 4096 if device == "cuda" else 8
    net = make(width).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=1e-3, fused=True)
    for _ in range(110):
        x = torch.randn(2 * width, width, device=device)
        prediction = net(x)  # <- TS107
        loss = F.mse_loss(prediction, x.mean(1, keepdim=True))
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(loss.item())


main()
