from transformers import Trainer


class Keeps(Trainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.parts = []

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        loss = outputs.loss + 0.1 * outputs.hidden_states[-1].pow(2).mean()
        self.parts.append(loss)  # <- TL204
        return (loss, outputs) if return_outputs else loss
