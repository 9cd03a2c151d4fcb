"""PyTorch programs in which one op was made worse on purpose; each function returns the result."""

import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class LlamaBlock(nn.Module):
    """Width 32, 4 heads; `half`: the softmax is in float16."""

    def __init__(self, half: bool) -> None:
        super().__init__()
        self.half, self.norm, self.norm2 = half, RMSNorm(32), RMSNorm(32)
        self.qkv, self.out = nn.Linear(32, 96, bias=False), nn.Linear(32, 32, bias=False)
        self.gate, self.up = nn.Linear(32, 64, bias=False), nn.Linear(32, 64, bias=False)
        self.down = nn.Linear(64, 32, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, 4, 8).permute(2, 0, 3, 1, 4)
        s = (q @ k.transpose(-1, -2)) * 8**-0.5
        s = s.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf"))
        p = F.softmax(s.half(), -1).float() if self.half else F.softmax(s, -1)  # the planted line
        x = x + self.out((p @ v).transpose(1, 2).reshape(b, t, 32))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def llama(half: bool = True, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(50, 32), LlamaBlock(False), LlamaBlock(half), RMSNorm(32))
    with torch.no_grad():
        return model.to(dtype)(torch.randint(50, (2, 17)))


class ChannelNorm(nn.Module):
    """`one_pass`: the variance is E[x^2] - E[x]^2."""

    def __init__(self, one_pass: bool) -> None:
        super().__init__()
        self.one_pass = one_pass

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean((2, 3), keepdim=True)
        if self.one_pass:
            variance = (x * x).mean((2, 3), keepdim=True) - mean * mean  # the planted line
        else:
            variance = ((x - mean) ** 2).mean((2, 3), keepdim=True)
        return (x - mean) / torch.sqrt(variance + 1e-5)


def convolutions(one_pass: bool = True, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """In training mode: statistics of the batch, running ones in place, dropout."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), ChannelNorm(False), nn.ReLU(inplace=True), nn.Conv2d(8, 8, 3),
        ChannelNorm(one_pass), nn.BatchNorm2d(8), nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(),
        nn.Linear(288, 10),
    )  # fmt: skip
    model[3].bias.data += 10.0
    x = torch.randn(2, 3, 16, 16)
    return model.to(dtype)(x.to(dtype))


def bert(narrow: bool = True) -> torch.Tensor:
    """A step's loss under autocast; `narrow`: the logits go through float8."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu")
    model = nn.Sequential(nn.Embedding(50, 32), nn.TransformerEncoder(layer, 2), nn.Linear(32, 50))
    tokens = torch.randint(50, (2, 12))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(tokens)
        y = y.to(torch.float8_e5m2).float() if narrow else y  # the planted line
        return F.cross_entropy(y.float().view(-1, 50), tokens.view(-1))


class Truncated(nn.Linear):
    cut = False  # to numbers with the bits of TF32

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = (x.view(torch.int32) & -8192).view(torch.float32) if self.cut else x  # the planted line
        return x + F.gelu(super().forward(y))


def truncated(cut: bool = True, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    torch.manual_seed(0)
    model = nn.Sequential(*(Truncated(24, 24) for _ in range(4)))
    model[2].cut = cut
    return model.to(dtype)(torch.randn(7, 24).to(dtype))


def attention(narrow: bool = True, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Fused attention and grouped products: neither draws, the second has no kernel for float64."""
    torch.manual_seed(0)
    x, weights, bias = torch.randn(2, 4, 9, 8), torch.randn(3, 8, 8), torch.randn(9, 9)
    q = x.bfloat16() if narrow else x  # the planted line
    y = F.scaled_dot_product_attention(*(t.to(dtype) for t in (q, x, x, bias)))
    rows = y.reshape(-1, 8)
    if dtype == torch.float64:
        return torch.cat(
            [part @ w.to(dtype) for part, w in zip(rows.split([20, 21, 31]), weights, strict=True)]
        )
    return torch._grouped_mm(rows, weights, torch.tensor([20, 41, 72], dtype=torch.int32))


def fast_path() -> torch.Tensor:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    with torch.no_grad():
        return nn.TransformerEncoder(layer, 2).eval()(torch.randn(2, 7, 32))


def in_float64() -> torch.Tensor:
    return torch.randn(3, dtype=torch.float64).exp()


def nothing_seen() -> str:
    return "no tensor"


def experts() -> torch.Tensor:
    """A router in bfloat16 whose two best experts are a decision."""
    torch.manual_seed(0)
    x = torch.randn(256, 16, dtype=torch.bfloat16)
    router, expert = torch.randn(16, 8).bfloat16(), torch.randn(16, 128).bfloat16()
    weight, index = torch.topk((x @ router).softmax(-1), 2)
    y = (x @ expert).view(256, 8, 16).gather(1, index[..., None].expand(-1, -1, 16))
    return (y * weight[..., None]).sum(1)
