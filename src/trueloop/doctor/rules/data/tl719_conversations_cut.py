"""Conversations are longer than the model's context, and lose their end.

## What it does

Counts the conversations that have more tokens than the context of the model that learns from them.

## Why it breaks training

Of a conversation that is too long the first tokens are kept. What is cut is its end: the last
response, which is often what the conversation is there for, and with it the token that ends a
response. A model that rarely sees a response end does not learn to stop. Where the question alone
fills the context, nothing is left to learn from, and the conversation is left out.

## Wrong

```python
ids = tokenizer.encode(conversation)[:128]  # most have 400: how they end is never seen
```

## Right

```python
ids = tokenizer.encode(conversation)
assert len(ids) <= 512, "longer than the context: leave it out, or train with a larger one"
```

## Sources

- TRL, [SFTConfig: `max_length`](https://huggingface.co/docs/trl/sft_trainer#trl.SFTConfig)

## How it is detected

At the start of `trueloop train text` on conversations: at least one in a hundred is cut.
"""
