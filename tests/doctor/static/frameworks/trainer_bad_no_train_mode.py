import torch
from transformers import Trainer, TrainingArguments


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(20, 50)
        self.drop = torch.nn.Dropout(0.3)
        self.head = torch.nn.Linear(50, 2)

    def forward(self, features, labels=None):
        logits = self.head(self.drop(self.body(features)))
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


class Adversarial(Trainer):
    def training_step(self, model, inputs, num_items_in_batch=None):
        inputs = self._prepare_inputs(inputs)
        outputs = model(inputs["features"], inputs["labels"])  # <- TL201
        loss = outputs["loss"]
        self.accelerator.backward(loss)
        return loss.detach()


def main(train, valid):
    args = TrainingArguments("out", eval_strategy="epoch", num_train_epochs=5)
    trainer = Adversarial(model=Net(), args=args, train_dataset=train, eval_dataset=valid)
    trainer.train()
