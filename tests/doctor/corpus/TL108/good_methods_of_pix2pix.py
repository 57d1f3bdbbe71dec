import torch
from torch import nn


class Model:
    def __init__(self):
        self.netG, self.netD = nn.Linear(4, 4), nn.Linear(4, 1)
        self.optimizer_G = torch.optim.Adam(self.netG.parameters(), lr=2e-4)
        self.optimizer_D = torch.optim.Adam(self.netD.parameters(), lr=2e-4)
        self.gan = nn.BCEWithLogitsLoss()

    def set_requires_grad(self, net, flag):
        for param in net.parameters():
            param.requires_grad = flag

    def forward(self, real_A):
        self.real_A = real_A
        self.fake_B = self.netG(real_A)

    def backward_D(self):
        n = len(self.real_A)
        fake = self.gan(self.netD(self.fake_B.detach()), torch.zeros(n, 1))
        self.loss_D = 0.5 * (fake + self.gan(self.netD(self.real_A), torch.ones(n, 1)))
        self.loss_D.backward()

    def backward_G(self):
        self.loss_G = self.gan(self.netD(self.fake_B), torch.ones(len(self.real_A), 1))
        self.loss_G.backward()

    def optimize_parameters(self, real_A):
        self.forward(real_A)
        self.set_requires_grad(self.netD, True)
        self.optimizer_D.zero_grad()
        self.backward_D()
        self.optimizer_D.step()
        self.set_requires_grad(self.netD, False)
        self.optimizer_G.zero_grad()
        self.backward_G()
        self.optimizer_G.step()


torch.manual_seed(0)
model = Model()
for _ in range(4):
    model.optimize_parameters(torch.randn(8, 4))
