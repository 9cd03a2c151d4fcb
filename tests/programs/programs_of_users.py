"""Functions and modules as users write them; read in torch's interpreter, not by pytest."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def fused(x, weight, bias):
    z = x @ weight + bias
    return F.gelu(F.layer_norm(z, (3,)), approximate="tanh") * 0.1


class Block(nn.Module):
    def __init__(self, width=12, heads=3):
        super().__init__()
        self.norm, self.heads = nn.LayerNorm(width), heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm(x)).split(width, dim=-1)
        q, k, v = (p.view(batch, length, self.heads, -1).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(x)))


class Llama(nn.Module):
    """Rotary positions, grouped queries, SwiGLU; with `softcap` as Gemma 2 has it."""

    def __init__(self, width=12, heads=3, softcap=None):
        super().__init__()
        self.heads, self.softcap = heads, softcap
        self.before, self.after = (nn.Parameter(torch.rand(width)) for _ in range(2))
        self.q, self.kv = nn.Linear(width, width, False), nn.Linear(width, 8, False)
        self.out, self.gate = nn.Linear(width, width, False), nn.Linear(width, 16, False)
        self.up, self.down = nn.Linear(width, 16, False), nn.Linear(16, width, False)

    def rotated(self, x):
        angles = torch.arange(x.shape[-2])[:, None] / 10000.0 ** (torch.arange(2) / 2)
        cos, sin = torch.cat([angles] * 2, -1).cos(), torch.cat([angles] * 2, -1).sin()
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    def forward(self, x):
        offset = 0.0 if self.softcap is None else 1.0
        z = F.rms_norm(x, x.shape[-1:], offset + self.before, 1e-6)
        q = self.rotated(self.q(z).unflatten(-1, (self.heads, 4)).transpose(1, 2))
        k, v = self.kv(z).unflatten(-1, (2, 1, 4)).unbind(2)
        k = self.rotated(k.transpose(1, 2)).repeat_interleave(self.heads, 1)
        scores = q @ k.transpose(2, 3) / 2
        if self.softcap is not None:
            scores = torch.tanh(scores / self.softcap) * self.softcap
        hidden = torch.full(scores.shape[-2:], torch.finfo(torch.float32).min).triu(1)
        y = torch.softmax(scores + hidden, -1) @ v.transpose(1, 2)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        z = F.rms_norm(x, x.shape[-1:], offset + self.after, 1e-6)
        gate = (
            F.silu(self.gate(z))
            if self.softcap is None
            else F.gelu(self.gate(z), approximate="tanh")
        )
        return x + self.down(gate * self.up(z))


class Gemma(Llama):
    def __init__(self):
        super().__init__(softcap=5.0)


class Bert(nn.TransformerEncoderLayer):
    def __init__(self):
        super().__init__(12, 3, 16, dropout=0.0, batch_first=True)


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*(Block() for _ in range(4)))

    def forward(self, x):
        return self.blocks(x)


class Net(nn.Sequential):
    def __init__(self):
        first = nn.Conv1d(5, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.MaxPool1d(2)
        super().__init__(*first, nn.Flatten(), nn.Linear(20, 12))

    def forward(self, x):
        return super().forward(x)


def causal(x):
    later = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
    return (x @ x.T / 2).masked_fill(later, -torch.inf).softmax(-1) @ x


def masked(x, keep):
    scores = (x @ x.transpose(0, 1)).masked_fill(~keep, float("-inf"))
    return torch.softmax(scores / math.sqrt(x.shape[1]), dim=-1) @ x


def resized(x):
    return F.interpolate(x, (6, 11), mode="bicubic", align_corners=True)


def branches(x):
    return x * 2 if x.sum() > 0 else x


def reads_a_number(x):
    return x * x.mean().item()


def quantises(x):
    return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize()


def is_sparse(x):
    return torch.sparse.mm(x.to_sparse(), x.T)


def autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return x @ x.T


def uncovered(x):
    return torch.special.bessel_j0(x)


def drops(x):
    return F.dropout(x, 0.5, training=True)


def no_tensor(x):
    return 3.0


def is_complex(x):
    return torch.fft.rfft(x).abs()


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, dy):
        return 3 * dy


def own_gradient(x):
    return _Doubled.apply(x)


BLOCKS = (Block, Llama, Gemma, Bert)
