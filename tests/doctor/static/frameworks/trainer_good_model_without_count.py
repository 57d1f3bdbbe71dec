from torch import nn
from transformers import Trainer, TrainingArguments


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(1000, 32)
        self.head = nn.Linear(32, 9)

    def forward(self, input_ids, labels=None):
        return self.head(self.embed(input_ids).mean(1))


class TopicTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        logits = model(inputs["input_ids"])
        loss = nn.functional.cross_entropy(logits, inputs["labels"])
        return (loss, {"logits": logits}) if return_outputs else loss


def run(data):
    args = TrainingArguments(output_dir="out", gradient_accumulation_steps=4)
    TopicTrainer(Encoder(), args, train_dataset=data).train()
