"""One step of a small decoder, of other hands' ports of it, and of ports with a mistake.

python ported_training.py NAME...
"""

import math
import sys

import torch
import torch.nn.functional as F
from capture import Capture
from torch import nn

D, HEADS, WORDS, LENGTH = 32, 4, 24, 10
TIED = "tied", "untied", "unmasked", "joined", "pairs", "unshifted", "squared", "summed", "late"


class Norm(nn.Module):
    def __init__(self, port, eps):
        super().__init__()
        self.weight, self.fused, self.eps = nn.Parameter(torch.ones(D)), port, eps

    def forward(self, x):
        if self.fused:
            return F.rms_norm(x, (D,), self.weight, self.eps)
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


class Block(nn.Module):
    def __init__(self, how, last=False):
        super().__init__()
        self.how = "pairs" if how == "interleaved" and last else how
        eps = 1e-3 if how == "eps" else 1e-6
        self.before, self.after = (Norm(how == "fused", eps) for _ in range(2))
        self.q, self.k, self.v, self.o = (nn.Linear(D, D, bias=False) for _ in range(4))
        self.gate, self.up, self.down = (nn.Linear(D, D, bias=False) for _ in range(3))

    def angles(self):
        base = 500.0 if self.how == "rope_base" else 10000.0
        angles = torch.arange(LENGTH)[:, None] * base ** (-torch.arange(0, 4) / 4)
        return torch.cat((angles, angles), -1)

    def turned(self, x, angles):
        if self.how == "pairs":
            turns = torch.polar(torch.ones(LENGTH, 4), angles[..., :4])
            z = torch.view_as_complex(x.unflatten(-1, (-1, 2))) * turns
            return torch.view_as_real(z).flatten(-2)
        a, b = x.chunk(2, -1)
        other = torch.cat((b, -a), -1) if self.how == "other_sense" else torch.cat((-b, a), -1)
        return x * angles.cos() + other * angles.sin()

    def attend(self, q, k, v):
        scale = 1.0 if self.how == "scale" else (D // HEADS) ** -0.5
        if self.how in ("fused", "scale"):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
        scores = q @ k.transpose(-1, -2) * scale
        least = -math.inf if self.how == "port" else torch.finfo(scores.dtype).min
        seen = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
        if self.how == "window":
            seen = seen.triu(-4)
        scores = scores + torch.zeros(LENGTH, LENGTH).masked_fill(~seen, least)
        return scores.softmax(-1) @ v

    def forward(self, x):
        n, how = self.before(x), self.how
        if how == "fused":
            joined = torch.cat((self.q.weight, self.k.weight, self.v.weight))
            parts = F.linear(n, joined).chunk(3, -1)
        elif how == "joined":
            parts = self.qkv(n).chunk(3, -1)
        elif how == "port":
            v, k, q = self.v(n), self.k(n), self.q(n)
            parts = q, k, v
        else:
            parts = self.q(n), self.k(n), self.v(n)
        q, k, v = (part.view(*x.shape[:2], HEADS, -1).transpose(1, 2) for part in parts)
        k, v = (v, k) if how == "values" else (k, v)
        angles = self.angles()
        heads = [self.turned(q, angles), self.turned(k, angles), v]
        if how == "viewed":  # where they are to be transposed
            heads = [part.mT.reshape(part.shape) for part in heads]
        y = self.attend(*heads)
        y = y.transpose(1, 2).reshape(x.shape)
        x = x + (y @ self.o.weight if how == "untransposed" else self.o(y))
        n = self.after(x)
        if how == "port":
            up = self.up(n)
            return self.down(up * F.silu(self.gate(n))) + x
        gate, up = (self.up(n), self.gate(n)) if how == "swapped" else (self.gate(n), self.up(n))
        f = {"gelu": F.gelu, "other": lambda x: x * torch.tanh(x).exp()}.get(how, F.silu)
        y = self.down(f(gate) * up)
        return y if how == "residual" else x + y


def centred(x, how):
    if how.startswith("fused"):
        return F.layer_norm(x, (D,), eps=1e-3 if how == "fused_eps" else 1e-5)
    x = x - x.mean(-1, keepdim=True)
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)


class Model(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.how = how
        self.embed = nn.Embedding(WORDS, D)
        self.blocks = nn.ModuleList([Block(how), Block(how, True)])
        self.head = nn.Linear(D, WORDS, bias=False)
        if how in TIED:
            self.head.weight = self.embed.weight

    def rewritten(self):
        """The same weights, held in another way."""
        if self.how == "untied":
            self.head.weight = nn.Parameter(self.embed.weight.detach().clone())
        for block in self.blocks:
            if self.how == "joined":
                block.qkv = nn.Linear(D, 3 * D, bias=False)
                weights = [getattr(block, name).weight for name in "qkv"]
                block.qkv.weight = nn.Parameter(torch.cat(weights).detach())
                del block.q, block.k, block.v
            for layer in (block.q, block.k) if self.how == "pairs" else ():
                rows = layer.weight.detach().view(HEADS, 2, -1, D).transpose(1, 2)
                layer.weight = nn.Parameter(rows.reshape(D, D).clone())

    def forward(self, ids):
        x = self.embed(ids)
        if self.how in TIED:  # decaying sums of means of four words: the last ones, or the next
            means, sums = F.avg_pool1d(F.pad(x.mT, (3, 3)), 4, 1).mT, [torch.zeros(len(x), D)]
            for mean in (means[:, 3:] if self.how == "late" else means[:, :-3]).unbind(1):
                sums.append(0.5 * sums[-1] + mean)
            x = torch.stack(sums[1:], 1)
        for k, block in enumerate(self.blocks):
            x = self.blocks[0](x) if k and self.how == "reused" else block(x)
        return self.head(centred(x, self.how))


def train(how):
    torch.manual_seed(0)
    model = Model(how)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn(D))
            elif "embed" not in name:
                parameter.mul_(3.0)
    model.rewritten()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = [*torch.randint(WORDS, (3, LENGTH), generator=torch.Generator().manual_seed(1))]
    with Capture(how, model, optimizer, steps=[0]) as capture:
        ids = torch.stack(rows)  # each is a part of memory that no call has made
        others = {"unshifted": ids, "summed": F.pad(ids, (0, 1))[:, 1:]}
        labels = others.get(how, ids[:, 1:]).clone()
        if how in TIED and how != "unmasked":
            labels[labels == 0] = -100  # padding
        counted, loss = (labels != -100).sum(), 0.0
        for part in (slice(0, 2), slice(2, 3)) if how == "joined" else (slice(0, 3),):
            z = model(ids[part])
            z = (z if how in ("unshifted", "summed") else z[:, :-1]).reshape(-1, WORDS)
            share = (labels[part] != -100).sum() / counted if how == "joined" else 1.0
            if how == "counted":
                one = -z.log_softmax(-1).gather(1, labels.reshape(-1, 1)).sum() / ids.numel()
            elif how == "squared":
                one = F.mse_loss(z.softmax(-1), F.one_hot(labels.reshape(-1).clamp(0), WORDS) * 1.0)
            else:
                reduction = "sum" if how == "summed" else "mean"
                one = F.cross_entropy(z, labels[part].reshape(-1), reduction=reduction) * share
            one.backward()
            loss = loss + one.detach()
        optimizer.step()
        optimizer.zero_grad()
        capture.step(loss=loss, batch=ids)


list(map(train, sys.argv[1:]))
