"""Losses weighted by tokens, summed with their graphs within one accumulation window only."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class FinetuneRecipe:
    def __init__(self, epochs=2, gradient_accumulation_steps=4, log_every_n_steps=1):
        self.epochs = epochs
        self._gradient_accumulation_steps = gradient_accumulation_steps
        self._log_every_n_steps = log_every_n_steps
        self.global_step = 0

    def setup(self):
        torch.manual_seed(0)
        data = TensorDataset(torch.randint(0, 20, (32, 6)), torch.randint(0, 20, (32, 6)))
        self._dataloader = DataLoader(data, batch_size=2, shuffle=True)
        self._model = nn.Sequential(nn.Embedding(20, 16), nn.Linear(16, 20))
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=1e-3)
        self._loss_fn = nn.CrossEntropyLoss()

    def train(self):
        self._optimizer.zero_grad()
        running_loss = 0
        num_tokens = 0
        for curr_epoch in range(self.epochs):
            for idx, (tokens, labels) in enumerate(self._dataloader):
                current_num_tokens = labels.numel()
                num_tokens += current_num_tokens
                logits = self._model(tokens)
                current_loss = self._loss_fn(logits.flatten(0, 1), labels.flatten())
                current_loss = current_loss * current_num_tokens
                running_loss += current_loss
                current_loss.backward()

                if (idx + 1) % self._gradient_accumulation_steps == 0:
                    for p in self._model.parameters():
                        p.grad.mul_(1 / num_tokens)
                    self._optimizer.step()
                    self._optimizer.zero_grad(set_to_none=True)
                    self.global_step += 1
                    loss_to_log = running_loss.item() / num_tokens
                    if self.global_step % self._log_every_n_steps == 0:
                        print(f"{curr_epoch + 1}|{self.global_step}|Loss: {loss_to_log:.4f}")
                    # Reset running stats for the next step
                    running_loss = 0
                    num_tokens = 0


recipe = FinetuneRecipe()
recipe.setup()
recipe.train()
