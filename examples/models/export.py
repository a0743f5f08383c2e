#!/usr/bin/env python3
"""Exports the models of this folder: inference graphs without weights, from PyTorch.

    export.py [--out FOLDER] [NAME...]   writes NAME.onnx (default: all models, beside this script) and prints a table of them
    export.py --check [NAME...]          exports to a temporary folder and compares with the files beside this script, byte by byte

Needs PyTorch 1.13 and the onnx package (Debian: python3-torch, python3-onnx); 2 GB of memory. The models are written out
here as torchvision and Hugging Face's transformers write them, with the names of their parameters, so that the graphs are those that
exports of the originals have. No weight is downloaded or made: parameters are graph inputs of the files.
"""

import argparse
import math
import pathlib
import sys
import tempfile
from typing import Callable, NamedTuple
from unittest import mock

import onnx
import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

# --- ResNet (He et al., CVPR 2016), as in torchvision -------------------------------------------------------------------------


class Bottleneck(nn.Module):
    """1x1, 3x3 (which has the stride) and 1x1 convolution beside a shortcut."""

    def __init__(self, channels, width, stride):
        super().__init__()
        out = 4 * width
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, blocks=(3, 4, 6, 3), classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        channels = 64
        for stage, count in enumerate(blocks):
            width, layers = 64 << stage, []
            for block in range(count):
                layers.append(Bottleneck(channels, width, 2 if stage and not block else 1))
                channels = 4 * width
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


# --- What the encoders of transformers share ----------------------------------------------------------------------------------


class SelfAttention(nn.Module):
    """Attention of all positions to all, or to those that `mask` (added to the scores) leaves."""

    def __init__(self, hidden, heads):
        super().__init__()
        self.heads, self.size = heads, hidden // heads
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)

    def transpose_for_scores(self, x):
        return x.view(x.size()[:-1] + (self.heads, self.size)).permute(0, 2, 1, 3)

    def forward(self, x, mask=None):
        key = self.transpose_for_scores(self.key(x))
        value = self.transpose_for_scores(self.value(x))
        query = self.transpose_for_scores(self.query(x))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.size)
        if mask is not None:
            scores = scores + mask
        context = torch.matmul(functional.softmax(scores, dim=-1), value).permute(0, 2, 1, 3).contiguous()
        return context.view(context.size()[:-2] + (self.heads * self.size,))


class Dense(nn.Module):
    """A linear layer under the name `dense`, as in the blocks of BERT and ViT."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.dense = nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.dense(x)


# --- BERT (Devlin et al., NAACL 2019) with the masked-token head: BertForMaskedLM ---------------------------------------------


class BertOutput(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.dense = nn.Linear(inputs, hidden)
        self.LayerNorm = nn.LayerNorm(hidden, eps=1e-12)

    def forward(self, x, residual):
        return self.LayerNorm(self.dense(x) + residual)


class BertAttention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.self = SelfAttention(hidden, heads)
        self.output = BertOutput(hidden, hidden)

    def forward(self, x, mask):
        return self.output(self.self(x, mask), x)


class BertLayer(nn.Module):
    def __init__(self, hidden, heads, intermediate):
        super().__init__()
        self.attention = BertAttention(hidden, heads)
        self.intermediate = Dense(hidden, intermediate)
        self.output = BertOutput(intermediate, hidden)

    def forward(self, x, mask):
        x = self.attention(x, mask)
        return self.output(functional.gelu(self.intermediate(x)), x)


class BertEmbeddings(nn.Module):
    def __init__(self, vocabulary, positions, hidden):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary, hidden)
        self.position_embeddings = nn.Embedding(positions, hidden)
        self.token_type_embeddings = nn.Embedding(2, hidden)
        self.LayerNorm = nn.LayerNorm(hidden, eps=1e-12)
        self.register_buffer("position_ids", torch.arange(positions).expand((1, -1)))

    def forward(self, input_ids, token_type_ids):
        position_ids = self.position_ids[:, : input_ids.size(1)]
        x = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        return self.LayerNorm(x + self.position_embeddings(position_ids))


class BertEncoder(nn.Module):
    def __init__(self, layers, hidden, heads, intermediate):
        super().__init__()
        self.layer = nn.ModuleList(BertLayer(hidden, heads, intermediate) for _ in range(layers))

    def forward(self, x, mask):
        for layer in self.layer:
            x = layer(x, mask)
        return x


class BertModel(nn.Module):
    def __init__(self, layers, hidden, heads, intermediate, vocabulary, positions):
        super().__init__()
        self.embeddings = BertEmbeddings(vocabulary, positions, hidden)
        self.encoder = BertEncoder(layers, hidden, heads, intermediate)

    def forward(self, input_ids, attention_mask, token_type_ids):
        mask = attention_mask[:, None, None, :].to(torch.float32)
        mask = (1.0 - mask) * torch.finfo(torch.float32).min
        return self.encoder(self.embeddings(input_ids, token_type_ids), mask)


class BertTransform(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.dense = nn.Linear(hidden, hidden)
        self.LayerNorm = nn.LayerNorm(hidden, eps=1e-12)

    def forward(self, x):
        return self.LayerNorm(functional.gelu(self.dense(x)))


class BertPredictions(nn.Module):
    def __init__(self, hidden, vocabulary):
        super().__init__()
        self.transform = BertTransform(hidden)
        self.decoder = nn.Linear(hidden, vocabulary)

    def forward(self, x):
        return self.decoder(self.transform(x))


class BertForMaskedLM(nn.Module):
    def __init__(self, layers=12, hidden=768, heads=12, intermediate=3072, vocabulary=30522, positions=512):
        super().__init__()
        self.bert = BertModel(layers, hidden, heads, intermediate, vocabulary, positions)
        self.cls = nn.Module()
        self.cls.predictions = BertPredictions(hidden, vocabulary)

    def tie_weights(self):
        self.cls.predictions.decoder.weight = self.bert.embeddings.word_embeddings.weight

    def forward(self, input_ids, attention_mask, token_type_ids):
        return self.cls.predictions(self.bert(input_ids, attention_mask, token_type_ids))


# --- GPT-2 (Radford et al., 2019): GPT2LMHeadModel ----------------------------------------------------------------------------


class Conv1D(nn.Module):
    """A linear layer whose weight is stored [inputs, outputs]."""

    def __init__(self, outputs, inputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))

    def forward(self, x):
        y = torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight)
        return y.view(x.size()[:-1] + (self.bias.size(0),))


class GPT2Attention(nn.Module):
    def __init__(self, hidden, heads, positions):
        super().__init__()
        self.heads, self.size = heads, hidden // heads
        self.register_buffer("bias", torch.ones((positions, positions), dtype=torch.bool).tril().view(1, 1, positions, positions))
        self.c_attn = Conv1D(3 * hidden, hidden)
        self.c_proj = Conv1D(hidden, hidden)

    def split_heads(self, x):
        return x.view(x.size()[:-1] + (self.heads, self.size)).permute(0, 2, 1, 3)

    def forward(self, x):
        query, key, value = self.c_attn(x).split(self.heads * self.size, dim=2)
        query, key, value = self.split_heads(query), self.split_heads(key), self.split_heads(value)
        weights = torch.matmul(query, key.transpose(-1, -2)) / self.size**0.5
        queries, keys = query.size(-2), key.size(-2)
        causal = self.bias[:, :, keys - queries : keys, :keys]
        weights = torch.where(causal, weights, torch.full([], torch.finfo(torch.float32).min, device=x.device))
        context = torch.matmul(functional.softmax(weights, dim=-1), value).permute(0, 2, 1, 3).contiguous()
        return self.c_proj(context.view(context.size()[:-2] + (self.heads * self.size,)))


class GPT2MLP(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.c_fc = Conv1D(4 * hidden, hidden)
        self.c_proj = Conv1D(hidden, 4 * hidden)

    @staticmethod
    def gelu_new(x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))

    def forward(self, x):
        return self.c_proj(self.gelu_new(self.c_fc(x)))


class GPT2Block(nn.Module):
    def __init__(self, hidden, heads, positions):
        super().__init__()
        self.ln_1 = nn.LayerNorm(hidden)
        self.attn = GPT2Attention(hidden, heads, positions)
        self.ln_2 = nn.LayerNorm(hidden)
        self.mlp = GPT2MLP(hidden)

    def forward(self, x):
        x = self.attn(self.ln_1(x)) + x
        return x + self.mlp(self.ln_2(x))


class GPT2Model(nn.Module):
    def __init__(self, layers, hidden, heads, vocabulary, positions):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, hidden)
        self.wpe = nn.Embedding(positions, hidden)
        self.h = nn.ModuleList(GPT2Block(hidden, heads, positions) for _ in range(layers))
        self.ln_f = nn.LayerNorm(hidden)

    def forward(self, input_ids):
        position_ids = torch.arange(input_ids.size(1), dtype=torch.long, device=input_ids.device).unsqueeze(0)
        x = self.wte(input_ids) + self.wpe(position_ids)
        for block in self.h:
            x = block(x)
        return self.ln_f(x)


class GPT2LMHeadModel(nn.Module):
    def __init__(self, layers=12, hidden=768, heads=12, vocabulary=50257, positions=1024):
        super().__init__()
        self.transformer = GPT2Model(layers, hidden, heads, vocabulary, positions)
        self.lm_head = nn.Linear(hidden, vocabulary, bias=False)

    def tie_weights(self):
        self.lm_head.weight = self.transformer.wte.weight

    def forward(self, input_ids):
        return self.lm_head(self.transformer(input_ids))


# --- ViT (Dosovitskiy et al., ICLR 2021): ViTForImageClassification -----------------------------------------------------------


class ViTAttention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.attention = SelfAttention(hidden, heads)
        self.output = Dense(hidden, hidden)

    def forward(self, x):
        return self.output(self.attention(x))


class ViTLayer(nn.Module):
    def __init__(self, hidden, heads, intermediate):
        super().__init__()
        self.attention = ViTAttention(hidden, heads)
        self.intermediate = Dense(hidden, intermediate)
        self.output = Dense(intermediate, hidden)
        self.layernorm_before = nn.LayerNorm(hidden, eps=1e-12)
        self.layernorm_after = nn.LayerNorm(hidden, eps=1e-12)

    def forward(self, x):
        x = self.attention(self.layernorm_before(x)) + x
        return self.output(functional.gelu(self.intermediate(self.layernorm_after(x)))) + x


class ViTEmbeddings(nn.Module):
    def __init__(self, image, patch, hidden):
        super().__init__()
        self.cls_token = nn.Parameter(torch.empty(1, 1, hidden))
        self.position_embeddings = nn.Parameter(torch.empty(1, (image // patch) ** 2 + 1, hidden))
        self.patch_embeddings = nn.Module()
        self.patch_embeddings.projection = nn.Conv2d(3, hidden, patch, patch)

    def forward(self, pixel_values):
        x = self.patch_embeddings.projection(pixel_values).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(pixel_values.size(0), -1, -1), x), dim=1)
        return x + self.position_embeddings


class ViTModel(nn.Module):
    def __init__(self, layers, hidden, heads, intermediate, image, patch):
        super().__init__()
        self.embeddings = ViTEmbeddings(image, patch, hidden)
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList(ViTLayer(hidden, heads, intermediate) for _ in range(layers))
        self.layernorm = nn.LayerNorm(hidden, eps=1e-12)

    def forward(self, pixel_values):
        x = self.embeddings(pixel_values)
        for layer in self.encoder.layer:
            x = layer(x)
        return self.layernorm(x)


class ViTForImageClassification(nn.Module):
    def __init__(self, layers=12, hidden=768, heads=12, intermediate=3072, image=224, patch=16, classes=1000):
        super().__init__()
        self.vit = ViTModel(layers, hidden, heads, intermediate, image, patch)
        self.classifier = nn.Linear(hidden, classes)

    def forward(self, pixel_values):
        return self.classifier(self.vit(pixel_values)[:, 0, :])


# --- A decoder of today (Touvron et al., 2023; sizes of Llama 3.2 1B): LlamaForCausalLM ---------------------------------------


class RMSNorm(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(hidden))

    def forward(self, x):
        variance = x.pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + 1e-5))


class RotaryEmbedding(nn.Module):
    def __init__(self, size, base=500000.0):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / base ** (torch.arange(0, size, 2).float() / size), persistent=False)

    def forward(self, position_ids):
        frequencies = self.inv_freq[None, :, None].expand(position_ids.shape[0], -1, 1)
        angles = (frequencies @ position_ids[:, None, :].float()).transpose(1, 2)
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos(), angles.sin()


def rotate_half(x):
    return torch.cat((-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]), dim=-1)


def repeat_kv(x, repeats):
    batch, heads, length, size = x.shape
    return x[:, :, None, :, :].expand(batch, heads, repeats, length, size).reshape(batch, heads * repeats, length, size)


class DecoderAttention(nn.Module):
    def __init__(self, hidden, heads, kv_heads, size):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, size
        self.q_proj = nn.Linear(hidden, heads * size, bias=False)
        self.k_proj = nn.Linear(hidden, kv_heads * size, bias=False)
        self.v_proj = nn.Linear(hidden, kv_heads * size, bias=False)
        self.o_proj = nn.Linear(heads * size, hidden, bias=False)

    def forward(self, x, mask, cos, sin):
        batch, length, _ = x.size()
        query = self.q_proj(x).view(batch, length, self.heads, self.size).transpose(1, 2)
        key = self.k_proj(x).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        value = self.v_proj(x).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        query = (query * cos) + (rotate_half(query) * sin)
        key = (key * cos) + (rotate_half(key) * sin)
        key, value = repeat_kv(key, self.heads // self.kv_heads), repeat_kv(value, self.heads // self.kv_heads)
        weights = torch.matmul(query, key.transpose(2, 3)) / math.sqrt(self.size)
        weights = weights + mask[:, :, :, : key.shape[-2]]
        context = torch.matmul(functional.softmax(weights, dim=-1), value).transpose(1, 2).contiguous()
        return self.o_proj(context.reshape(batch, length, self.heads * self.size))


class DecoderMLP(nn.Module):
    def __init__(self, hidden, intermediate):
        super().__init__()
        self.gate_proj = nn.Linear(hidden, intermediate, bias=False)
        self.up_proj = nn.Linear(hidden, intermediate, bias=False)
        self.down_proj = nn.Linear(intermediate, hidden, bias=False)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(nn.Module):
    def __init__(self, hidden, heads, kv_heads, size, intermediate):
        super().__init__()
        self.self_attn = DecoderAttention(hidden, heads, kv_heads, size)
        self.mlp = DecoderMLP(hidden, intermediate)
        self.input_layernorm = RMSNorm(hidden)
        self.post_attention_layernorm = RMSNorm(hidden)

    def forward(self, x, mask, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), mask, cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class DecoderModel(nn.Module):
    def __init__(self, layers, hidden, heads, kv_heads, size, intermediate, vocabulary):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, hidden)
        self.layers = nn.ModuleList(DecoderLayer(hidden, heads, kv_heads, size, intermediate) for _ in range(layers))
        self.norm = RMSNorm(hidden)
        self.rotary_emb = RotaryEmbedding(size)

    def forward(self, input_ids):
        batch, length = input_ids.shape
        position = torch.arange(length, device=input_ids.device)
        mask = torch.full((length, length), torch.finfo(torch.float32).min, device=input_ids.device)
        mask = torch.triu(mask, diagonal=1) * (position > position.reshape(-1, 1))
        mask = mask[None, None, :, :].expand(batch, 1, -1, -1)
        cos, sin = self.rotary_emb(position.unsqueeze(0))
        x = self.embed_tokens(input_ids)
        for layer in self.layers:
            x = layer(x, mask, cos, sin)
        return self.norm(x)


class DecoderForCausalLM(nn.Module):
    def __init__(self, layers=16, hidden=2048, heads=32, kv_heads=8, size=64, intermediate=8192, vocabulary=128256):
        super().__init__()
        self.model = DecoderModel(layers, hidden, heads, kv_heads, size, intermediate, vocabulary)
        self.lm_head = nn.Linear(hidden, vocabulary, bias=False)

    def tie_weights(self):
        self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, input_ids):
        return self.lm_head(self.model(input_ids))


# --- The models and what is known of them -------------------------------------------------------------------------------------


class Known(NamedTuple):
    make: Callable[[], nn.Module]
    opset: int
    parameters: int          # published
    multiply_adds: int       # of one sample, by hand
    inputs: tuple            # names
    sequence: int = 0        # tokens of that sample; 0: it is an image


def encoder_products(layers, hidden, sequence):
    """Multiply-adds of blocks: four projections, two products of attention, two layers of 4 * hidden."""
    return layers * sequence * (4 * hidden**2 + 2 * sequence * hidden + 8 * hidden**2)


IMAGE = 224
MODELS = {
    "resnet50": Known(ResNet, 13, 25_557_032, 4_089_184_256, ("images",)),
    "bert_base": Known(BertForMaskedLM, 14, 109_514_298, encoder_products(12, 768, 512) + 512 * 768 * (768 + 30522),
                       ("input_ids", "attention_mask", "token_type_ids"), 512),
    "gpt2": Known(GPT2LMHeadModel, 13, 124_439_808, encoder_products(12, 768, 1024) + 1024 * 768 * 50257, ("input_ids",), 1024),
    "vit_b_16": Known(ViTForImageClassification, 17, 86_567_656, 196 * 768 * 3 * 16**2 + encoder_products(12, 768, 197) + 768 * 1000,
                      ("pixel_values",)),
    "decoder_1b": Known(DecoderForCausalLM, 17, 1_235_814_400,
                        2048 * (16 * (2 * 2048**2 + 2 * 2048 * 512 + 3 * 2048 * 8192 + 2 * 2048 * 2048) + 2048 * 128256),
                        ("input_ids",), 2048),
}


class OnMeta(TorchDispatchMode):
    """While it is entered, tensors that would be made without contents, to be initialised, are made without memory."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is torch.ops.aten.empty.memory_format:
            kwargs = {**(kwargs or {}), "device": "meta"}
        return function(*args, **(kwargs or {}))


class MultiplyAdds(TorchDispatchMode):
    """Adds up, while it is entered, the multiply-adds of matrix products and convolutions. Outer products, of which nothing is summed
    (the angles of rotary positions), do not count."""

    def __init__(self):
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        aten = torch.ops.aten
        if function in (aten.mm.default, aten.bmm.default, aten.addmm.default):
            inner = args[-1].shape[-2]
            self.total += result.numel() * inner if inner > 1 else 0
        elif function is aten.convolution.default:
            self.total += result.numel() * args[1][0].numel()
        return result


def build(known):
    """The model for inference; all elements of a parameter are one in memory."""
    with OnMeta():
        model = known.make()
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            setattr(module, name, nn.Parameter(torch.zeros(()).expand(parameter.shape), requires_grad=False))
    if hasattr(model, "tie_weights"):
        model.tie_weights()
    model.eval()
    model.training = True  # of the whole alone, which does not ask: keeps the exporter from joining parameters of equal contents
    return model


def example(known, batch, sequence, device="cpu"):
    """Inputs of the model."""
    if not known.sequence:
        return (torch.zeros((batch, 3, IMAGE, IMAGE), device=device),)
    return tuple(torch.zeros((batch, sequence), dtype=torch.long, device=device) for _ in known.inputs)


def expect(name, what, value, expected):
    """Ends the program unless they are equal."""
    if value != expected:
        raise SystemExit(f"{name}: {what}: {value}, not {expected}"[:400])


def write_once(path):
    """Leaves out of a file the nodes that compute what a node before them does: most of what the exporter writes are small constants
    and arithmetic on shapes, over and over."""
    model = onnx.load(str(path))
    firsts, renamed, kept = {}, {}, []
    for node in model.graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        attributes = sorted(a.SerializeToString(deterministic=True) for a in node.attribute)
        first = firsts.setdefault((node.op_type, node.domain, len(node.output), *node.input, *attributes), node)
        if first is node:
            kept.append(node)
        else:
            renamed.update(zip(node.output, first.output))
    expect(path.name, "outputs left out", {v.name for v in model.graph.output} & set(renamed), set())
    del model.graph.node[:]
    model.graph.node.extend(kept)
    path.write_bytes(model.SerializeToString(deterministic=True))


def export(known, path):
    """Writes the model; answers the multiply-adds of a sample and the sizes of the parameters, both as PyTorch has them."""
    # The tracer would keep a copy of each parameter, with all its elements, and shape inference, which needs no contents, make another.
    infer = torch._C._jit_pass_onnx_graph_shape_type_inference
    without_contents = mock.patch.object(torch._C, infer.__name__, lambda graph, _, opset: infer(graph, {}, opset))
    without_copies = mock.patch.object(torch.Tensor, "clone", lambda tensor, **_: tensor)
    with torch.no_grad(), without_copies, without_contents:
        model = build(known)
        axes = {0: "batch", 1: "sequence"} if known.sequence else {0: "batch"}
        # Neither folds weights into others (batch normalization into convolutions, transposed copies): PRESERVE, do_constant_folding.
        torch.onnx.export(model, example(known, 2, 8), str(path), export_params=False, training=torch.onnx.TrainingMode.PRESERVE,
                          do_constant_folding=False, opset_version=known.opset, input_names=list(known.inputs),
                          output_names=["logits"], dynamic_axes={name: axes for name in (*known.inputs, "logits")})
        write_once(path)
        sizes = {name: list(parameter.shape) for name, parameter in model.named_parameters()}
        with MultiplyAdds() as count:
            model.to("meta")(*example(known, 1, known.sequence, "meta"))
    return count.total, sizes


def check(name, known, path, multiply_adds, sizes):
    """Ends the program unless the file and the counts are as they must be. Answers the number of nodes."""
    model = onnx.load(str(path))
    onnx.checker.check_model(model)
    given = {v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.input}
    expect(name, "parameters", sum(math.prod(size) for size in sizes.values()), known.parameters)
    expect(name, "multiply-adds", multiply_adds, known.multiply_adds)
    expect(name, "initialisers", len(model.graph.initializer), 0)
    expect(name, "shapes of the parameters", {n: given.get(n) for n in sizes}, sizes)
    expect(name, "first axis of the data", {given[n][0] for n in known.inputs}, {"batch"})
    expect(name, "opset", [o.version for o in model.opset_import], [known.opset])
    largest = max((len(a.t.raw_data) for n in model.graph.node for a in n.attribute), default=0)
    if largest > 4096:
        raise SystemExit(f"{name}: a constant of {largest} bytes is in the graph")
    return len(model.graph.node)


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=here, metavar="FOLDER")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MODELS))
    options = parser.parse_args()
    if unknown := set(options.names) - set(MODELS):
        parser.error(f"no such model: {', '.join(sorted(unknown))}")
    different = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) if options.check else options.out
        print(f"PyTorch {torch.__version__}")
        print(f"{'file':18} {'opset':>5} {'nodes':>5} {'KB':>4} {'parameters':>13} {'multiply-adds':>17}  of a sample of")
        for name in options.names or MODELS:
            known, path = MODELS[name], folder / f"{name}.onnx"
            multiply_adds, sizes = export(known, path)
            nodes = check(name, known, path, multiply_adds, sizes)
            sample = f"{known.sequence} tokens" if known.sequence else f"{IMAGE} x {IMAGE} pixels"
            size = path.stat().st_size // 1000
            print(f"{path.name:18} {known.opset:5} {nodes:5} {size:4} {known.parameters:13,} {multiply_adds:17,}  {sample}", flush=True)
            kept = here / path.name
            if options.check and not (kept.exists() and kept.read_bytes() == path.read_bytes()):
                different.append(path.name)
    if different:
        raise SystemExit(f"not as in {here}: {', '.join(different)}")


if __name__ == "__main__":
    main()
