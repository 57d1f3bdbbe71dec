import torch
import torch.nn as nn


class CrossEntropyLoss(nn.Module):
    """Cross entropy between probabilities and class ids, with a floor under the probabilities."""

    def __init__(self, eps=1e-7):
        super().__init__()
        self.eps = eps

    def forward(self, probs, target):
        picked = probs.gather(1, target.unsqueeze(1)).squeeze(1)
        return -torch.log(picked.clamp_min(self.eps)).mean()


class Gate(nn.Module):
    """Two experts, mixed as probabilities."""

    def __init__(self, dim, classes):
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(dim, classes) for _ in range(2)])
        self.gate = nn.Linear(dim, 2)

    def forward(self, x):
        weights = torch.softmax(self.gate(x), dim=1)
        outputs = torch.stack([expert(x).softmax(dim=1) for expert in self.experts], dim=1)
        return (weights.unsqueeze(-1) * outputs).sum(dim=1)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(128, 6)
    y = (x.sum(dim=1) > 0).long()
    model, criterion = Gate(6, 2), CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(30):
        batch = torch.randint(0, len(x), (32,))
        loss = criterion(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(step, loss.item())

    single = nn.Sequential(nn.Linear(6, 2), nn.Softmax(dim=1))
    optimizer = torch.optim.Adam(single.parameters(), lr=1e-2)
    for _ in range(30):
        batch = torch.randint(0, len(x), (32,))
        loss = criterion(single(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
