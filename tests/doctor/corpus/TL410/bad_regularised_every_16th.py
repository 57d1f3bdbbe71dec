import torch
from torch import autograd, nn
from torch.nn import functional as F


def d_r1_loss(real_pred, real_img):
    (grad_real,) = autograd.grad(outputs=real_pred.sum(), inputs=real_img)  # <- TL410
    return grad_real.pow(2).reshape(grad_real.shape[0], -1).sum(1).mean()


torch.manual_seed(0)
discriminator = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
d_optim = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.0, 0.99))
d_reg_every, r1 = 2, 10
for i in range(8):
    real_img = torch.randn(6, 4)
    real_pred = discriminator(real_img)
    d_loss = F.softplus(-real_pred).mean() + F.softplus(discriminator(torch.randn(6, 4))).mean()
    discriminator.zero_grad()
    d_loss.backward()
    d_optim.step()
    if i % d_reg_every == 0:
        real_img.requires_grad = True
        fresh = discriminator(real_img)
        scores = discriminator(real_img)
        r1_loss = d_r1_loss(scores, real_img)
        discriminator.zero_grad()
        (r1 / 2 * r1_loss * d_reg_every + 0 * fresh[0]).backward()
        d_optim.step()
