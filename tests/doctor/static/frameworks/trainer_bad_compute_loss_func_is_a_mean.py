import torch
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

WEIGHTS = torch.tensor([0.2, 0.8])


def weighted(outputs, labels, num_items_in_batch=None):
    return torch.nn.functional.cross_entropy(outputs.logits, labels, weight=WEIGHTS)  # <- TL505


model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased")
args = TrainingArguments(output_dir="out", gradient_accumulation_steps=16, bf16=True)
trainer = Trainer(model=model, args=args, train_dataset=load(), compute_loss_func=weighted)
trainer.train()
