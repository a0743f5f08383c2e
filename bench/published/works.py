"""What the rows of published runs name: networks, devices."""

# MPT: d_model, n_heads, n_layers of scripts/train/yamls/pretrain in mosaicml/llm-foundry. (layers, width, heads)
MPT = {
    "125m": (12, 768, 12), "350m": (24, 1024, 16), "760m": (24, 1536, 12), "1b": (24, 2048, 16), "3b": (32, 2560, 20), "7b": (32, 4096, 32),
    "13b": (40, 5120, 40), "30b": (48, 7168, 56), "70b": (80, 8192, 64),
}
MPT_VOCABULARY = 50368


def llama(layers, hidden, heads, kv_heads, feed_forward, vocabulary):
    return (f"zoo:llama,layers={layers},hidden={hidden},heads={heads},kv_heads={kv_heads},feed_forward={feed_forward},vocabulary={vocabulary},"
            "tied=false", kv_heads)


# (network, heads of keys and values). Touvron et al., arXiv 2307.09288; Grattafiori et al., arXiv 2407.21783, table 3.
LLAMA = {
    "llama2_7b": llama(32, 4096, 32, 32, 11008, 32000), "llama2_13b": llama(40, 5120, 40, 40, 13824, 32000),
    "llama2_70b": llama(80, 8192, 64, 8, 28672, 32000), "llama3_8b": llama(32, 4096, 32, 8, 14336, 128256),
    "llama3_70b": llama(80, 8192, 64, 8, 28672, 128256), "llama3_405b": llama(126, 16384, 128, 8, 53248, 128256),
}

# (network, optimizer, unit, what is not as published).
SINGLE = {
    **{name: (f"zoo:{name}", "momentum", "images/s", []) for name in ("alexnet", "inception_v3", "resnet50", "resnet101", "resnet152", "vgg16")},
    "bert_base": ("zoo:bert_base", "adam", "sequences/s", ["LAMB priced as Adam"]),
    "bert_large": ("zoo:bert_large", "adam", "sequences/s", ["LAMB priced as Adam"]),
}


def bert_predictions(sequence):
    """Masked tokens of a sample: 20 of 128 and 80 of 512 in NVIDIA/DeepLearningExamples, else as many by proportion."""
    return {128: 20, 512: 80}.get(sequence, max(1, sequence * 20 // 128))


# Presets, and what differs from them. h100_500w: benchmarks/llama3_h100_202412_torchtitan.md of pytorch/torchtitan; a100_40gb: A100 data sheet.
DEVICES = {
    "k80": {"preset": "k80"},
    "p100": {"preset": "p100"},
    "v100": {"preset": "v100"},
    "a100": {"preset": "a100"},
    "a100_40gb": {"preset": "a100", "kind": "a100_40gb", "memory": 40 << 30, "memory_rate": 1555e9},
    "h100": {"preset": "h100"},
    "h200": {"preset": "h200"},
    "b200": {"preset": "b200"},
    "h100_500w": {"preset": "h100", "kind": "h100_500w", "memory": 96 << 30, "memory_rate": 2.4e12},
}
DEVICE_NOTES = {"h100_500w": ["limit of power not priced"]}

# Layers of a stage where each device has several: --num-layers-per-virtual-pipeline-stage in examples/sc21/run_table_1.sh of NVIDIA/Megatron-LM.
MEGATRON_STAGE_LAYERS = {"76B": 5, "145B": 5, "310B": 3, "530B": 1}
