"""Conversations are longer than the model's context and are cut at the end.

## What it does

Counts the conversations with more tokens than the context of the model.

## Why it breaks training

Only the first tokens of such a conversation are kept. Its end is lost: the last response, often the
most important one, and the token that ends a response. A model that rarely sees this token does not
learn to stop. If the question by itself fills the context, nothing is left to learn from, and the
conversation is skipped.

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
