import torch
import torch.optim as O
from torch import nn


def main(epochs=2):
    torch.manual_seed(4)
    points = torch.randn(60, 2)
    labels = (points.prod(dim=1) > 0).float()
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(points, labels), batch_size=15, shuffle=True
    )
    clf = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    bce = nn.BCEWithLogitsLoss()
    optim = O.SGD(clf.parameters(), lr=0.5)
    for epoch in range(epochs):
        for p, t in loader:
            clf.zero_grad()
            loss = bce(clf(p).squeeze(1), t)
            loss.backward()  # <- TL106
            nn.utils.clip_grad_norm_(clf.parameters(), 1.0)
        print(f"{epoch}: {loss.item():.4f} at lr {optim.param_groups[0]['lr']}")


main()
