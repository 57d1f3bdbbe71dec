import torch
import torch.nn as nn
import torch.optim as optim

torch.manual_seed(0)
ndf, ngpu, batch_size = 8, 1, 4


class _netD(nn.Module):
    def __init__(self, ngpu):
        super(_netD, self).__init__()
        self.ngpu = ngpu
        self.main = nn.Sequential(
            nn.Conv2d(1, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, 1, 4, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, input):
        if input.is_cuda and self.ngpu > 1:
            output = nn.parallel.data_parallel(self.main, input, range(self.ngpu))
        else:
            output = self.main(input)
        return output.view(-1, 1)


netD = _netD(ngpu)
criterion = nn.BCEWithLogitsLoss()
optimizerD = optim.Adam(netD.parameters(), lr=0.0002, betas=(0.5, 0.999))
label = torch.ones(batch_size, 1)

for epoch in range(2):
    for i in range(4):
        real = torch.randn(batch_size, 1, 8, 8)
        netD.zero_grad()
        output = netD(real)
        errD = criterion(output, label)  # <- TL402
        errD.backward()
        optimizerD.step()
    print(epoch, errD.item())
