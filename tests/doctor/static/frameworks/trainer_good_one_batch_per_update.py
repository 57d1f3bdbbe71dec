from torch import nn
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


class Weighted(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = nn.functional.cross_entropy(outputs.logits[:, 0], labels)
        return (loss, outputs) if return_outputs else loss


def main(dataset, accumulate):
    model = AutoModelForCausalLM.from_pretrained("gpt2")
    Weighted(model, TrainingArguments("out"), train_dataset=dataset).train()
