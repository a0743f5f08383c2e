#!/usr/bin/env python3
"""Writes a model of the transformers library as an ONNX file that `plan` reads, from configuration alone: no weights are made or downloaded.

    from_transformers.py NAME [FILE] [--set KEY=VALUE]...     NAME: one of --list; FILE: NAME.onnx unless given
    from_transformers.py --list

    from_transformers.py llama_8b
    plan --model llama_8b.onnx,batch=16,sequence=4096,type=bf16 --cluster 1x8xh100 --out plan-llama --export pytorch

`--set num_hidden_layers=4` changes the configuration. Needs transformers 5 and what from_pytorch.py needs (requirements.txt).
"""

import argparse
import ast
import sys
from unittest import mock

import torch
import transformers
from transformers import masking_utils
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from from_pytorch import save, weightless

# Class, configuration, and the published number of parameters.
MODELS = {
    # A. Grattafiori et al., The Llama 3 herd of models, 2024, table 3
    "llama_8b": (transformers.LlamaForCausalLM, transformers.LlamaConfig,
                 {"vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
                  "num_key_value_heads": 8, "max_position_embeddings": 8192, "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}},
                 8_030_261_248),
    # A. Jiang et al., Mixtral of experts, 2024, table 1
    "mixtral_8x7b": (transformers.MixtralForCausalLM, transformers.MixtralConfig,
                     {"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
                      "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": None}, 46_702_792_704),
    # A. Dosovitskiy et al., An image is worth 16x16 words, ICLR 2021, table 1
    "vit_l_16": (transformers.ViTForImageClassification, transformers.ViTConfig,
                 {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 224,
                  "patch_size": 16, "num_labels": 1000}, 304_326_632),
}


def whole_masks(*args, attention_mask=None, allow_is_causal_skip=True, allow_is_bidirectional_skip=False, local_size=None, **kwargs):
    """No mask where attention is to all positions, or to all before: attention says that by itself."""
    if attention_mask is None and (allow_is_causal_skip or allow_is_bidirectional_skip) and local_size is None:
        return None
    return masking_utils.sdpa_mask(*args, attention_mask=attention_mask, allow_is_causal_skip=False, local_size=local_size, **kwargs)


def experts_node(self, hidden_states, top_k_index, top_k_weights):
    """All experts as one node: tokens, the weight of each expert for each token, and the experts' parameters."""
    gates = torch.zeros(hidden_states.shape[0], self.num_experts, dtype=top_k_weights.dtype).scatter(1, top_k_index, top_k_weights)
    first = "gate_up" if self.has_gate else "up"
    parameters = [getattr(self, f"{first}_proj"), self.down_proj]
    if self.has_bias:
        parameters += [getattr(self, f"{first}_proj_bias"), self.down_proj_bias]
    return torch.onnx.ops.symbolic("parsearch::Experts", (hidden_states, gates, *parameters),
                                   {"k": top_k_index.shape[-1], "gated": int(self.has_gate), "activation": self.config.hidden_act},
                                   dtype=hidden_states.dtype, shape=hidden_states.shape, version=1)


transformers.AttentionInterface.register("parsearch", sdpa_attention_forward)
transformers.AttentionMaskInterface.register("parsearch", whole_masks)
ALL_EXPERTS_FUNCTIONS.register("parsearch", experts_node)


def export(model, file):
    """Writes a model that takes tokens or images as `file`. Each row of tokens is a sequence of its own."""
    model.set_attn_implementation("parsearch")
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("parsearch")
    if model.main_input_name == "pixel_values":
        config = model.config
        inputs, dims = {"pixel_values": torch.zeros(2, config.num_channels, config.image_size, config.image_size)}, {"pixel_values": ("batch",)}
    else:
        model.config.use_cache = False
        inputs, dims = {"input_ids": torch.zeros(2, 128, dtype=torch.long)}, {"input_ids": ("batch", "sequence")}
    with mock.patch.object(masking_utils, "find_packed_sequence_indices", lambda positions: None):
        save(model, inputs, file, dims)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("name", nargs="?", choices=MODELS, help="the model")
    parser.add_argument("file", nargs="?", help="what to write [NAME.onnx]")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="another value of the configuration; several times for several")
    parser.add_argument("--list", action="store_true", help="lists the models")
    asked = parser.parse_args()
    if asked.list or not asked.name:
        for name, (kind, _, values, parameters) in MODELS.items():
            print(f"{name:13} {kind.__name__}, {parameters:,} parameters: {', '.join(f'{k}={v}' for k, v in values.items())}")
        sys.exit(0 if asked.list else 2)
    kind, config, values, published = MODELS[asked.name]
    values = dict(values)
    for one in asked.set:
        key, equals, value = one.partition("=")
        if not equals:
            sys.exit(f"--set '{one}': must be KEY=VALUE")
        if not hasattr(config(), key):
            sys.exit(f"--set '{one}': {config.__name__} has no '{key}'")
        values[key] = ast.literal_eval(value)
    model = weightless(lambda: kind(config(**values)))
    parameters = sum(p.numel() for p in model.parameters())
    if not asked.set and parameters != published:
        sys.exit(f"{asked.name} has {parameters:,} parameters: published are {published:,}")
    file = asked.file or asked.name + ".onnx"
    export(model, file)
    print(f"{file}: {parameters:,} parameters")


if __name__ == "__main__":
    main()
