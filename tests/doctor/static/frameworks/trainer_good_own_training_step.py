import torch
from transformers import Trainer


class Adversarial(Trainer):
    def training_step(self, model, inputs, num_items_in_batch=None):
        model.train()
        inputs = self._prepare_inputs(inputs)
        with self.compute_loss_context_manager():
            loss = self.compute_loss(model, inputs, num_items_in_batch=num_items_in_batch)
        self.accelerator.backward(loss)
        word = model.get_input_embeddings().weight
        step = 0.1 * word.grad.sign()
        word.data.add_(step)
        again = self.compute_loss(model, inputs, num_items_in_batch=num_items_in_batch)
        self.accelerator.backward(again)
        word.data.sub_(step)
        return loss.detach()

    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad():
            logits = model(**inputs).logits
        return None, logits.argmax(-1), inputs["labels"]
