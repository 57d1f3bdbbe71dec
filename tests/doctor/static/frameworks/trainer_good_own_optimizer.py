import torch
from transformers import Seq2SeqTrainer, get_cosine_schedule_with_warmup


class Layered(Seq2SeqTrainer):
    def create_optimizer(self):
        groups = [
            {"params": [p for n, p in self.model.named_parameters() if "bias" in n],
             "weight_decay": 0.0},
            {"params": [p for n, p in self.model.named_parameters() if "bias" not in n]},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=self.args.learning_rate)
        return self.optimizer

    def create_scheduler(self, num_training_steps, optimizer=None):
        self.lr_scheduler = get_cosine_schedule_with_warmup(
            self.optimizer, self.args.warmup_steps, num_training_steps
        )
        return self.lr_scheduler

    def evaluate(self, *args, **kwargs):
        found = super().evaluate(*args, **kwargs)
        self.model.train()
        return found
