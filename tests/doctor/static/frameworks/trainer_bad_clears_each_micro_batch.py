import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


class Clean(Trainer):
    def training_step(self, model, inputs, num_items_in_batch=None):
        self.optimizer.zero_grad()  # <- TL508
        return super().training_step(model, inputs, num_items_in_batch)


model = AutoModelForCausalLM.from_pretrained("gpt2")
args = TrainingArguments("out", per_device_train_batch_size=2, gradient_accumulation_steps=16)
Clean(model, args, train_dataset=torch.load("tokens.pt")).train()
