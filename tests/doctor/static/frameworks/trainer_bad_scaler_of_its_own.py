import torch
from transformers import Trainer


class Scaled(Trainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.scaler = torch.amp.GradScaler("cuda")

    def training_step(self, model, inputs, num_items_in_batch=None):  # <- TL503
        model.train()
        loss = self.compute_loss(model, self._prepare_inputs(inputs))
        self.scaler.scale(loss).backward()
        return loss.detach()
