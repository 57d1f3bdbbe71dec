import torch
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments


class Zeroth(Trainer):
    def _inner_training_loop(self, *args, **kwargs):
        for batch in self.get_train_dataloader():
            self.training_step(self.model, batch)

    def training_step(self, model, inputs, num_items_in_batch=None):
        with torch.no_grad():
            first = self.compute_loss(model, inputs)
            second = self.compute_loss(model, inputs)
        self.direction = (first - second).item()
        return first


model = AutoModelForSequenceClassification.from_pretrained("roberta-base")
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=5000)
Zeroth(
    model, TrainingArguments("out", max_steps=5000), optimizers=(optimizer, schedule)
).train()
Trainer(
    model, TrainingArguments("out", max_steps=5000), optimizers=(optimizer, None)
).train()
