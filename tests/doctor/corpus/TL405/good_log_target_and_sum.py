"""Mutual learning: both sides in log space, and a consistency loss summed by hand."""

import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.2), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, x):
        return self.layers(x)


def rdrop(first, second):
    p, q = F.log_softmax(first, dim=-1), F.log_softmax(second, dim=-1)
    forward = F.kl_div(p, F.softmax(second, dim=-1), reduction="none").sum(dim=-1).mean()
    backward = F.kl_div(q, F.softmax(first, dim=-1), reduction="none").sum(dim=-1).mean()
    return (forward + backward) / 2


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(128, 6)
    y = x[:, :4].argmax(dim=1)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), batch_size=32, shuffle=True
    )
    first, second = Net(), Net()
    mutual = nn.KLDivLoss(reduction="batchmean", log_target=True)
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=1e-3)
    for epoch in range(2):
        for data, target in loader:
            a, b = first(data), second(data)
            loss = F.cross_entropy(a, target) + F.cross_entropy(b, target)
            loss = loss + mutual(a.log_softmax(dim=1), b.detach().log_softmax(dim=1))
            loss = loss + rdrop(a, first(data))
            loss = loss + F.kl_div(F.logsigmoid(a), torch.sigmoid(b), reduction="sum") / len(data)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
