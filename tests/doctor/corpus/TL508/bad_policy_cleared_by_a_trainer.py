import torch
from accelerate import Accelerator
from torch import nn


class Trainer:
    def __init__(self, accelerator, policy, optimizer):
        self.accelerator, self.policy, self.optimizer = accelerator, policy, optimizer

    def learn(self, rollouts):
        for states, actions, rewards in rollouts:
            with self.accelerator.accumulate(self.policy):
                chosen = self.policy(states).log_softmax(1).gather(1, actions)
                self.accelerator.backward(-(chosen * rewards).mean())
                if self.accelerator.sync_gradients:
                    self.accelerator.clip_grad_norm_(self.policy.parameters(), 1.0)
                self.optimizer.step()
                self.policy.zero_grad(set_to_none=True)  # <- TL508


def main():
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    policy = nn.Linear(4, 3)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    policy, optimizer = accelerator.prepare(policy, optimizer)
    trainer = Trainer(accelerator, policy, optimizer)
    for _ in range(3):
        trainer.learn(
            [
                (torch.randn(8, 4), torch.randint(0, 3, (8, 1)), torch.randn(8, 1))
                for _ in range(4)
            ]
        )


main()
