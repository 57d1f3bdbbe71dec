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
from torch.utils.data import StackDataset
from transformers import Trainer, TrainingArguments

EPOCHS = 20


class GANTrainer(Trainer):
    def __init__(self, *args, discriminator, d_optimizer, **kwargs):
        super().__init__(*args, **kwargs)
        self.discriminator, self.d_optimizer = discriminator, d_optimizer

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        real = inputs["points"]
        fake = model(torch.randn(len(real), LATENT))
        self.d_optimizer.zero_grad()
        real_or_fake_loss(self.discriminator(real), self.discriminator(fake.detach())).backward()
        self.d_optimizer.step()
        return fooling_loss(self.discriminator(fake))


torch.manual_seed(0)
model, discriminator = Generator(), Discriminator()
g_optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.0, 0.99))
d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=6e-3, betas=(0.0, 0.99))
trainer = GANTrainer(
    model,
    TrainingArguments(
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=64,
        lr_scheduler_type="constant",
        max_grad_norm=0.0,
        remove_unused_columns=False,
    ),
    train_dataset=StackDataset(points=ring(640, seed=0)),
    optimizers=(g_optimizer, None),
    discriminator=discriminator,
    d_optimizer=d_optimizer,
)
trainer.train()
result = {"radius": mean_radius(model)}
