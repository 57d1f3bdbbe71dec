from transformers import Trainer


class Weighted(Trainer):
    """As before transformers 4.31: the Trainer steps through its scaler."""

    def training_step(self, model, inputs):
        model.train()
        inputs = self._prepare_inputs(inputs)
        loss = 0.5 * self.compute_loss(model, inputs)
        if self.args.gradient_accumulation_steps > 1:
            loss = loss / self.args.gradient_accumulation_steps
        if self.do_grad_scaling:
            self.scaler.scale(loss).backward()
        else:
            loss.backward()
        return loss.detach()


class Prompted(Trainer):
    """Accelerate's optimizer steps through the accelerator's scaler."""

    def training_step(self, model, inputs, num_items_in_batch=None):
        model.train()
        loss = self.compute_loss(model, self._prepare_inputs(inputs))
        if self.accelerator.scaler is not None:
            self.accelerator.scaler.scale(loss).backward()
        else:
            loss.backward()
        return loss.detach()
