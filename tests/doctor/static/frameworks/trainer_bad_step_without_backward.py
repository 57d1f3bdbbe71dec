from transformers import Trainer


class Plain(Trainer):
    def training_step(self, model, inputs, num_items_in_batch=None):  # <- TL108
        model.train()
        inputs = self._prepare_inputs(inputs)
        loss = self.compute_loss(model, inputs)
        return loss.detach()


class Distiller(Trainer):
    def __init__(self, teacher, **kwargs):
        super().__init__(**kwargs)
        self.teacher = teacher.eval()
