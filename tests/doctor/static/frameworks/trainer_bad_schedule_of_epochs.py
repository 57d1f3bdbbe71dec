import torch
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

EPOCHS = 20
model = AutoModelForSequenceClassification.from_pretrained("roberta-base")
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)  # <- TL602
trainer = Trainer(
    model=model,
    args=TrainingArguments("out", num_train_epochs=EPOCHS),
    train_dataset=torch.load("train.pt"),
    optimizers=(optimizer, schedule),
)
trainer.train()
