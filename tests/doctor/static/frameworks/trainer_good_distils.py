import torch
from transformers import Trainer


class Distiller(Trainer):
    def __init__(self, *args, teacher=None, temperature=2.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.teacher = teacher.eval()
        self.temperature = temperature

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        own = model(**inputs)
        with torch.no_grad():
            goal = self.teacher(**inputs)
        soft = torch.nn.functional.kl_div(
            torch.log_softmax(own.logits / self.temperature, -1),
            torch.softmax(goal.logits / self.temperature, -1),
            reduction="batchmean",
        )
        loss = own.loss + self.temperature**2 * soft
        self.log({"soft": soft.item()})
        return (loss, own) if return_outputs else loss
