import torch
from transformers import Trainer


class Clipped(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        loss = outputs.loss
        if model.training:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)  # <- TL104
        return (loss, outputs) if return_outputs else loss
