import torch
from torch import nn, optim

torch.manual_seed(0)
torch.set_num_threads(1)
net_g = nn.Sequential(nn.ConvTranspose2d(6, 4, 4), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 1, 1))
net_d = nn.Sequential(nn.Conv2d(1, 4, 4), nn.Flatten(), nn.Linear(4, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer_d = optim.Adam(net_d.parameters(), lr=2e-4)
optimizer_g = optim.Adam(net_g.parameters(), lr=2e-4)
dataloader = torch.utils.data.DataLoader(torch.rand(24, 1, 4, 4), batch_size=8, shuffle=True)

for epoch in range(2):
    for i, images in enumerate(dataloader):
        label = torch.ones(images.size(0), 1)
        net_d.zero_grad()
        net_g.zero_grad()
        # the generator first
        fake = net_g(torch.randn(images.size(0), 6, 1, 1))
        err_g = criterion(net_d(fake), label)
        err_g.backward()
        optimizer_g.step()
        # then the discriminator, on real images and on the generated ones
        err_real = criterion(net_d(images), label)
        err_real.backward()
        err_fake = criterion(net_d(fake.detach()), torch.zeros_like(label))
        err_fake.backward()  # <- TL110
        optimizer_d.step()
        print(epoch, i, err_g.item(), err_real.item() + err_fake.item())
