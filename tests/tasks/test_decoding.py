"""The short way for single tokens gives the model's own logits, whatever the architecture."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from trueloop.generate import generate
from trueloop.tasks.text.decoding import Decoding, can_decode
from trueloop.tasks.text.transformer import Transformer
from trueloop.tasks.text.transformer_config import TransformerConfig

SHAPES: list[dict[str, Any]] = [
    {},
    {"kv_heads": 2, "tied": False},
    {"kv_heads": 1, "head_width": 6, "qk_norm": True},
    {"norm": "layer", "positions": "learned", "activation": "gelu_tanh", "bias": True},
    {"norm": "layer", "activation": "gelu", "attention_bias": True, "dropout": 0.1},
    {"activation": "relu2", "qk_norm": True, "rotary_scaling": {"type": "linear", "factor": 2.0}},
]


def random_model(**changes: Any) -> Transformer:
    torch.manual_seed(0)
    shape = {"vocab_size": 19, "context": 24, "layers": 3, "width": 16, "heads": 4, **changes}
    model = Transformer(TransformerConfig(**shape)).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize("changes", SHAPES)
@pytest.mark.parametrize("lengths", [[5, 5, 5], [5, 2, 4]])
def test_logits_are_the_models(changes: dict[str, Any], lengths: list[int]) -> None:
    model = random_model(**changes)
    with torch.inference_mode():
        assert can_decode(model)
        short = Decoding(model)
        prompt = torch.randint(19, (3, 5))
        caches = [model.new_cache(3, 20), model.new_cache(3, 20)]
        for each, cache in zip((model, short), caches, strict=True):
            each(prompt, cache=cache)
            cache.truncate(lengths)
        for _ in range(10):
            tokens = torch.randint(19, (3, 1))
            ours, theirs = short(tokens, cache=caches[0]), model(tokens, cache=caches[1])
            torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=1e-9)
        first = model.new_cache(3, 20)
        alone = short(prompt[:, :1], cache=first)
        torch.testing.assert_close(alone, model(prompt[:, :1]), atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("changes", SHAPES[1:4])
def test_generate_writes_the_same(changes: dict[str, Any]) -> None:
    """Beyond the context too; and what was computed in the cache is what is computed without."""
    model = random_model(**changes)
    rows = [[1, 2, 3], [4], [5, 6, 7, 8]]
    for options in ({"temperature": 0}, {"top_k": 5, "num_samples": 2}):
        one = generate(model, rows, max_new_tokens=40, **options)
        two = generate(model, rows, max_new_tokens=40, cache=False, **options)
        assert one.rows() == two.rows()
        torch.testing.assert_close(one.log_probs, two.log_probs, atol=1e-8, rtol=0)
    beams = {"max_new_tokens": 18, "beams": 3}
    assert (
        generate(model, rows, **beams).rows() == generate(model, rows, cache=False, **beams).rows()
    )


def test_models_that_are_more_than_their_weights_go_the_long_way() -> None:
    model = random_model()
    assert not can_decode(random_model().bfloat16())
    handle = model.blocks[0].mlp.up.register_forward_hook(lambda *_: None)
    assert not can_decode(model)
    handle.remove()
    assert can_decode(model)
    with torch.autocast("cpu", torch.bfloat16):
        assert not can_decode(model)
    torch.nn.utils.parametrize.register_parametrization(
        model.blocks[1].attention.key, "weight", torch.nn.Identity()
    )
    assert not can_decode(model)


def test_a_model_with_lora_keeps_its_adapters() -> None:
    import trueloop

    model = random_model()
    trueloop.lora.apply(model, ["query", "value"], rank=2)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.normal_()
    assert not can_decode(model)
    options = {"max_new_tokens": 20, "temperature": 0}
    one = generate(model, [1, 2], **options).rows()
    assert one == generate(model, [1, 2], cache=False, **options).rows()


def test_weights_may_change_between_two_calls() -> None:
    model = random_model()
    before = generate(model, [1], max_new_tokens=20, temperature=0)
    with torch.no_grad():
        model.blocks[0].attention.value.weight.mul_(-3)
    after = generate(model, [1], max_new_tokens=20, temperature=0)
    plain = generate(model, [1], max_new_tokens=20, temperature=0, cache=False)
    assert after.rows() == plain.rows() != before.rows()
