import torch
from torch import nn
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


class WeightedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        logits = outputs.logits[:, :-1].flatten(0, 1)
        loss = nn.functional.cross_entropy(logits, labels[:, 1:].flatten())  # <- TL505
        return (loss, outputs) if return_outputs else loss


def main(dataset):
    model = AutoModelForCausalLM.from_pretrained("gpt2")
    args = TrainingArguments("out", gradient_accumulation_steps=8, learning_rate=5e-5)
    trainer = WeightedTrainer(model=model, args=args, train_dataset=dataset)
    trainer.train()
