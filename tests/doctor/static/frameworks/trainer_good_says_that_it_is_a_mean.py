from torch import nn
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


class Mean(Trainer):
    loss_is_scaled_for_ga = False

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = nn.functional.cross_entropy(outputs.logits[:, 0], labels)
        return (loss, outputs) if return_outputs else loss


class Older(Trainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.model_accepts_loss_kwargs = False

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(input_ids=inputs["input_ids"])
        loss = nn.functional.cross_entropy(outputs.logits[:, 0], inputs["labels"])
        return (loss, outputs) if return_outputs else loss


def main(dataset):
    model = AutoModelForCausalLM.from_pretrained("gpt2")
    args = TrainingArguments("out", gradient_accumulation_steps=8)
    Mean(model=model, args=args, train_dataset=dataset).train()
    Older(model=model, args=args, train_dataset=dataset).train()
