"""Tiny models with real random weights: every layer changes the tokens, an adapter changes them from the first one on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM, INNER, VOCABULARY = 3, 256, 4, 2, 64, 512, 1024


def llama(folder: Path) -> Path:
    """A dense model."""
    config = _config("LlamaForCausalLM", "llama")
    return _write(folder, config, [*_dense(), *_ends()])


def wide_llama(folder: Path) -> Path:
    """Eight layers of width 1024: a step with some work in it, for measurements."""
    hidden, inner, heads, kv_heads, vocabulary = 1024, 4096, 16, 4, 8192
    config = _config("LlamaForCausalLM", "llama") | {
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": 8,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "vocab_size": vocabulary,
    }
    tensors: list[Tensor] = [
        ("model.embed_tokens.weight", (vocabulary, hidden), "unit"),
        ("model.norm.weight", (hidden,), "ones"),
        ("lm_head.weight", (vocabulary, hidden), "random"),
    ]
    for layer in range(8):
        at = f"model.layers.{layer}"
        for name, rows in (("q", heads * HEAD_DIM), ("k", kv_heads * HEAD_DIM), ("v", kv_heads * HEAD_DIM)):
            tensors.append((f"{at}.self_attn.{name}_proj.weight", (rows, hidden), "random"))
        tensors.append((f"{at}.self_attn.o_proj.weight", (hidden, heads * HEAD_DIM), "random"))
        tensors += [(f"{at}.{name}_layernorm.weight", (hidden,), "ones") for name in ("input", "post_attention")]
        tensors += [
            (f"{at}.mlp.gate_proj.weight", (inner, hidden), "random"),
            (f"{at}.mlp.up_proj.weight", (inner, hidden), "random"),
            (f"{at}.mlp.down_proj.weight", (hidden, inner), "random"),
        ]
    return _write(folder, config, tensors)


def llama_8b(folder: Path) -> Path:
    """The shape of Llama 3.1 8B without its weights: to be served with `--load-format dummy`, for measurements."""
    folder.mkdir(parents=True, exist_ok=True)
    shape = {
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 128256,
    }
    (folder / "config.json").write_text(json.dumps(_config("LlamaForCausalLM", "llama") | shape, indent=1))
    return folder


def qwen3_moe(folder: Path) -> Path:
    """A mixture of eight experts, two a token."""
    extra = {
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 128,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }
    tensors = [*_ends()]
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        tensors += [*_attention(at), *_norms(at), (f"{at}.mlp.gate.weight", (8, HIDDEN), "random")]
        tensors += [(f"{at}.self_attn.{name}_norm.weight", (HEAD_DIM,), "ones") for name in "qk"]
        for expert in range(8):
            tensors += _gated(f"{at}.mlp.experts.{expert}", 128)
    return _write(folder, _config("Qwen3MoeForCausalLM", "qwen3_moe") | extra, tensors)


def eagle_draft(folder: Path) -> Path:
    """A draft for the dense model: one layer over the target's hidden states."""
    config = _config("LlamaForCausalLMEagle", "llama") | {"num_hidden_layers": 1}
    tensors = [
        *_attention("layers.0"),
        ("layers.0.post_attention_layernorm.weight", (HIDDEN,), "ones"),
        *_gated("layers.0.mlp", INNER),
        ("fc.weight", (HIDDEN, 2 * HIDDEN), "random"),
    ]
    return _write(folder, config, tensors, seed=3)


def llama_draft(folder: Path) -> Path:
    """A draft of its own for the dense model (STANDALONE): the same in small, one layer."""
    config = _config("LlamaForCausalLM", "llama") | {"num_hidden_layers": 1}
    at = "model.layers.0"
    tensors = [*_attention(at), *_norms(at), *_gated(f"{at}.mlp", INNER), *_ends()]
    return _write(folder, config, tensors, seed=4)


def dflash_draft(folder: Path) -> Path:
    """A draft of blocks of four tokens for the dense model (DFLASH): one layer over hidden states of two of the target's."""
    extra = {
        "num_hidden_layers": 1,
        "num_target_layers": LAYERS,
        "block_size": 4,
        "dflash_config": {"mask_token_id": VOCABULARY - 1, "target_layer_ids": [0, 1]},
    }
    at = "layers.0"
    tensors = [*_attention(at), *_norms(at), *_gated(f"{at}.mlp", INNER)]
    tensors += [(f"{at}.self_attn.{name}_norm.weight", (HEAD_DIM,), "ones") for name in "qk"]
    tensors += [("fc.weight", (HIDDEN, 2 * HIDDEN), "random")]
    tensors += [(f"{name}.weight", (HIDDEN,), "ones") for name in ("hidden_norm", "norm")]
    return _write(folder, _config("DFlashDraftModel", "qwen3") | extra, tensors, seed=5)


def lora(folder: Path, seed: int, rank: int = 8) -> Path:
    """An adapter of q_proj and v_proj."""
    tensors = []
    for layer in range(LAYERS):
        for name, rows in (("q_proj", HEADS * HEAD_DIM), ("v_proj", KV_HEADS * HEAD_DIM)):
            key = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            tensors += [
                (f"{key}.lora_A.weight", (rank, HIDDEN), "half"),
                (f"{key}.lora_B.weight", (rows, rank), "half"),
            ]
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": rank,
        "lora_alpha": rank,
        "target_modules": ["q_proj", "v_proj"],
        "bias": "none",
    }
    return _write(
        folder, config, tensors, seed=seed, name="adapter_model.safetensors", config_name="adapter_config.json"
    )


Tensor = tuple[str, tuple[int, ...], str]


def _config(architecture: str, kind: str) -> dict[str, Any]:
    return {
        "architectures": [architecture],
        "model_type": kind,
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


def _ends() -> list[Tensor]:
    return [
        ("model.embed_tokens.weight", (VOCABULARY, HIDDEN), "unit"),
        ("model.norm.weight", (HIDDEN,), "ones"),
        ("lm_head.weight", (VOCABULARY, HIDDEN), "random"),
    ]


def _dense() -> list[Tensor]:
    found: list[Tensor] = []
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        found += [*_attention(at), *_norms(at), *_gated(f"{at}.mlp", INNER)]
    return found


def _attention(at: str) -> list[Tensor]:
    width = {"q": HEADS * HEAD_DIM, "k": KV_HEADS * HEAD_DIM, "v": KV_HEADS * HEAD_DIM}
    found: list[Tensor] = [(f"{at}.self_attn.{n}_proj.weight", (rows, HIDDEN), "random") for n, rows in width.items()]
    return [*found, (f"{at}.self_attn.o_proj.weight", (HIDDEN, HEADS * HEAD_DIM), "random")]


def _norms(at: str) -> list[Tensor]:
    return [(f"{at}.{name}_layernorm.weight", (HIDDEN,), "ones") for name in ("input", "post_attention")]


def _gated(at: str, inner: int) -> list[Tensor]:
    return [
        (f"{at}.gate_proj.weight", (inner, HIDDEN), "random"),
        (f"{at}.up_proj.weight", (inner, HIDDEN), "random"),
        (f"{at}.down_proj.weight", (HIDDEN, inner), "random"),
    ]


def _write(
    folder: Path,
    config: dict[str, Any],
    tensors: list[Tensor],
    *,
    seed: int = 1,
    name: str = "model.safetensors",
    config_name: str = "config.json",
) -> Path:
    import torch
    from safetensors.torch import save_file

    if (folder / name).exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / config_name).write_text(json.dumps(config, indent=1))
    generator = torch.Generator().manual_seed(seed)
    # The spread keeps activations near one, so that no layer drowns in another.
    scale = {"random": lambda shape: shape[-1] ** -0.5, "unit": lambda shape: 1.0, "half": lambda shape: 0.5}
    made = {}
    for key, shape, kind in tensors:
        if kind == "ones":
            made[key] = torch.ones(shape, dtype=torch.bfloat16)
        else:
            made[key] = (torch.randn(shape, generator=generator) * scale[kind](shape)).to(torch.bfloat16)
    save_file(made, folder / name, metadata={"format": "pt"})
    return folder
