# REINFORCE: log-probabilities and rewards are kept until the episode ends.
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions import Categorical


class Corridor:
    """Walk right to win."""

    def reset(self):
        self.position = 0
        return torch.tensor([0.0, 1.0])

    def step(self, action):
        self.position += 1 if action == 1 else -1
        done = abs(self.position) >= 3
        state = torch.tensor([self.position / 3, 1.0])
        return state, float(self.position == 3), done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, state):
        return torch.softmax(self.affine(state), dim=-1)


torch.manual_seed(0)
policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
env = Corridor()


def select_action(state):
    m = Categorical(policy(state))
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()


def finish_episode(gamma=0.99):
    R, returns = 0, []
    for r in policy.rewards[::-1]:
        R = r + gamma * R
        returns.insert(0, R)
    policy_loss = [-log_prob * R for log_prob, R in zip(policy.saved_log_probs, returns)]
    optimizer.zero_grad()
    torch.stack(policy_loss).sum().backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]


def main():
    for episode in range(10):
        state, total = env.reset(), 0.0
        for t in range(1, 50):
            state, reward, done = env.step(select_action(state))
            policy.rewards.append(reward)
            total += reward
            if done:
                break
        finish_episode()
        print(f"episode {episode}: {total}")


if __name__ == "__main__":
    main()
