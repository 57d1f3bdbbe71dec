import lightning as L
import torch
from shared import GPT, next_token_loss, windows
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader

UPDATES = 80


class LanguageModel(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = GPT()

    def training_step(self, tokens, batch_idx):
        return next_token_loss(self.model(tokens[:, :-1]), tokens)

    def validation_step(self, tokens, batch_idx):
        self.log("loss", next_token_loss(self.model(tokens[:, :-1]), tokens))

    def configure_optimizers(self):
        matrices = [p for p in self.parameters() if p.ndim >= 2]
        vectors = [p for p in self.parameters() if p.ndim < 2]
        groups = [
            {"params": matrices, "weight_decay": 0.1},
            {"params": vectors, "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(groups, lr=1e-2, fused=True)
        scheduler = CosineAnnealingLR(optimizer, T_max=UPDATES)
        return [optimizer], [{"scheduler": scheduler, "interval": "step"}]


torch.manual_seed(0)
train = DataLoader(windows(500, seed=0), batch_size=32, shuffle=True)
val = DataLoader(windows(50, seed=1), batch_size=32)
language_model = LanguageModel()
trainer = L.Trainer(max_steps=UPDATES, gradient_clip_val=1.0)
trainer.fit(language_model, train)
(result,) = trainer.validate(language_model, val)
model = language_model.model
