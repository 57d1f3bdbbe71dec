import torch
from torch import nn
from torch.optim import AdamW


def fit(model, data_loader, *, epochs, lr, clip):
    optimizer = AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    model = model.train()
    losses = []
    for _ in range(epochs):
        for d in data_loader:
            outputs = model(d["features"])
            loss = nn.functional.cross_entropy(outputs, d["targets"])
            losses.append(loss.item())
            loss.backward()
            optimizer.step()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=clip)  # <- TL105
            optimizer.zero_grad()
        scheduler.step()
    return sum(losses) / len(losses)


class Reviews(torch.utils.data.Dataset):
    def __init__(self):
        self.x, self.y = torch.randn(50, 6), torch.randint(0, 3, (50,))

    def __len__(self):
        return 50

    def __getitem__(self, item):
        return dict(features=self.x[item], targets=self.y[item])


if __name__ == "__main__":
    torch.manual_seed(0)
    loader = torch.utils.data.DataLoader(Reviews(), batch_size=10, shuffle=True)
    print(fit(nn.Linear(6, 3), loader, epochs=2, lr=2e-3, clip=1.0))
