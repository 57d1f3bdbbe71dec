import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


class WeightedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        logits = outputs.logits[:, :-1].flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(logits, labels[:, 1:].flatten())
        return (loss, outputs) if return_outputs else loss


model = AutoModelForCausalLM.from_pretrained("gpt2")
args = TrainingArguments("out", gradient_accumulation_steps=8)
WeightedTrainer(model, args, train_dataset=torch.load("tokens.pt")).train()
