import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def fit_one_cycle(epochs, max_lr, model, train_loader, opt_func=torch.optim.SGD):
    optimizer = opt_func(model.parameters(), max_lr, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr, epochs=epochs, steps_per_epoch=len(train_loader)
    )
    lrs = []
    for epoch in range(epochs):
        model.train()
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            nn.utils.clip_grad_value_(model.parameters(), 0.1)
            optimizer.step()
            optimizer.zero_grad()
            lrs.append(optimizer.param_groups[0]["lr"])
            sched.step()
        print(f"Epoch [{epoch}], last_lr: {lrs[-1]:.5f}, loss: {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(192, 8)
    y = x[:, :2].argmax(dim=1)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    fit_one_cycle(3, 0.1, nn.Linear(8, 2), loader)
