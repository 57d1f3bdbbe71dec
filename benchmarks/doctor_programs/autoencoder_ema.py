"""An autoencoder with an averaged copy of its weights, validated on the copy."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader


class AutoEncoder(nn.Module):
    def __init__(self, size=10, code=3):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(size, 16), nn.GELU(), nn.Linear(16, code))
        self.decoder = nn.Sequential(nn.Linear(code, 16), nn.GELU(), nn.Linear(16, size))

    def forward(self, x):
        return self.decoder(self.encoder(x))


@torch.no_grad()
def update_ema(ema_model, model, decay):
    for ema_p, p in zip(ema_model.parameters(), model.parameters()):
        ema_p.mul_(decay).add_(p, alpha=1 - decay)


@torch.no_grad()
def reconstruction_error(model, data):
    model.eval()
    total = 0.0
    for x in data:
        total += (model(x) - x).pow(2).mean(dim=1).sum().item()
    return total / len(data.dataset)


def run(epochs=3, lr=3e-3, decay=0.9):
    torch.manual_seed(21)
    basis = torch.randn(3, 10)
    data = torch.randn(100, 3) @ basis
    train_data = DataLoader(data[:80], batch_size=16, shuffle=True)
    val_data = DataLoader(data[80:], batch_size=20)
    model = AutoEncoder()
    ema_model = copy.deepcopy(model)
    for p in ema_model.parameters():
        p.requires_grad_(False)
    opt = torch.optim.RMSprop(model.parameters(), lr=lr)
    sched = torch.optim.lr_scheduler.MultiStepLR(opt, milestones=[1, 2], gamma=0.5)

    for epoch in range(epochs):
        model.train()
        running = 0.0
        for x in train_data:
            for param in model.parameters():
                param.grad = None
            recon = model(x)
            mse = nn.functional.mse_loss(recon, x)
            sparsity = model.encoder(x).abs().mean()
            loss = mse + 0.01 * sparsity
            loss.backward()
            opt.step()
            update_ema(ema_model, model, decay)
            running += loss.detach()
        sched.step()
        error = reconstruction_error(ema_model, val_data)
        print(f"{epoch} {running.item() / len(train_data):.4f} {error:.4f}")
    torch.save({"model": model.state_dict(), "ema": ema_model.state_dict()}, "autoencoder.pt")


if __name__ == "__main__":
    run()
