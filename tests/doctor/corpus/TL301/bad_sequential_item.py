# The last layer of the classifier is exchanged by index, two lines too late.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
pictures, kinds = torch.randn(80, 1, 5, 5), torch.randint(0, 2, (80,))
batches = DataLoader(TensorDataset(pictures, kinds), batch_size=20, shuffle=True)


class AlexLike(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.classifier = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 100))

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


net = AlexLike()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.9)
net.classifier[2] = nn.Linear(12, 2)  # <- TL301

for epoch in range(2):
    for picture, kind in batches:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(picture), kind)
        loss.backward()
        opt.step()
    scheduler.step()
    print(epoch, loss.item())
