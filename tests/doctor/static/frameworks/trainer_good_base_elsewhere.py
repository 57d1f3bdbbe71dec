from corpus import BaseTrainer
from trl import SFTTrainer


class Mine(BaseTrainer):
    def training_step(self, model, inputs):
        return self.compute_loss(model, inputs)


class Tuned(SFTTrainer):
    def training_step(self, model, inputs, num_items_in_batch=None):
        return super().training_step(model, inputs, num_items_in_batch)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
