from torch import nn
from transformers import Trainer, TrainingArguments


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(1000, 32)
        self.head = nn.Linear(32, 9)

    def forward(self, input_ids, **kwargs):
        return self.head(self.embed(input_ids).mean(1))


class TopicTrainer(Trainer):
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        logits = model(inputs["input_ids"])
        loss = self.criterion(logits, inputs["labels"])  # <- TL505
        if return_outputs:
            return loss, {"logits": logits}
        return loss


def run(data):
    args = TrainingArguments(output_dir="out", gradient_accumulation_steps=4)
    TopicTrainer(Encoder(), args, train_dataset=data).train()
