import torch
import torch.nn as nn


class LSTMTagger(nn.Module):
    def __init__(self, vocab_size, tagset_size, embedding_dim=12, hidden_dim=16):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab_size, embedding_dim)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim, batch_first=True)
        self.hidden2tag = nn.Linear(hidden_dim, tagset_size)

    def forward(self, sentences):
        lstm_out, _ = self.lstm(self.word_embeddings(sentences))
        return self.hidden2tag(lstm_out)


class Trainer:
    def __init__(self, model, sentences, tags, lr=0.1, batch_size=8):
        self.model = model
        self.dataset = torch.utils.data.TensorDataset(sentences, tags)
        self.loader = torch.utils.data.DataLoader(self.dataset, batch_size=batch_size, shuffle=True)
        self.loss_function = nn.NLLLoss(ignore_index=-1)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)

    def compute_loss(self, sentences, tags):
        tag_scores = self.model(sentences)
        tag_scores = tag_scores.reshape(-1, tag_scores.size(-1))
        return self.loss_function(tag_scores, tags.reshape(-1))  # <- TL403

    def run(self, epochs):
        self.model.train()
        for epoch in range(epochs):
            for sentences, tags in self.loader:
                self.model.zero_grad()
                loss = self.compute_loss(sentences, tags)
                loss.backward()
                self.optimizer.step()
            print(epoch, loss.item())


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    sentences = torch.randint(0, 25, (64, 7))
    tags = sentences % 4
    Trainer(LSTMTagger(25, 4), sentences, tags).run(epochs=3)
