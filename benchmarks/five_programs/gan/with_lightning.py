import lightning as L
import torch
from shared import (
    LATENT,
    Discriminator,
    Generator,
    fooling_loss,
    mean_radius,
    real_or_fake_loss,
    ring,
)
from torch.utils.data import DataLoader

EPOCHS = 20


class GAN(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator, self.discriminator = Generator(), Discriminator()

    def training_step(self, real, batch_idx):
        g_optimizer, d_optimizer = self.optimizers()
        fake = self.generator(torch.randn(len(real), LATENT))
        d_optimizer.zero_grad()
        self.manual_backward(
            real_or_fake_loss(self.discriminator(real), self.discriminator(fake.detach()))
        )
        d_optimizer.step()
        g_optimizer.zero_grad()
        self.manual_backward(fooling_loss(self.discriminator(fake)))
        g_optimizer.step()

    def configure_optimizers(self):
        return [
            torch.optim.Adam(self.generator.parameters(), lr=2e-3, betas=(0.0, 0.99)),
            torch.optim.Adam(self.discriminator.parameters(), lr=6e-3, betas=(0.0, 0.99)),
        ]


torch.manual_seed(0)
train = DataLoader(ring(640, seed=0), batch_size=64, shuffle=True)
gan = GAN()
L.Trainer(max_epochs=EPOCHS).fit(gan, train)
model = gan.generator
result = {"radius": mean_radius(model)}
