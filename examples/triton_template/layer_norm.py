"""LayerNorm in Triton: a template of a kernel with its test (test_layer_norm.py).

    TRITON_INTERPRET=1 python -m pytest examples/triton_template     on a CPU, interpreted
    python -m pytest examples/triton_template                        on a GPU
    refkernels measure --kernel examples/triton_template/layer_norm.py:layernorm --python torch

One program computes one row, in tiles of BLOCK columns: the mean first, then the variance of the
differences from it (two passes, so that a large mean costs no digits), in float32.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _layer_norm(x, weight, bias, y, columns, eps, BLOCK: tl.constexpr, TILES: tl.constexpr):
    row = tl.program_id(0)
    x += row * columns
    y += row * columns
    places = tl.arange(0, BLOCK)

    total = tl.zeros((BLOCK,), tl.float32)
    for tile in range(TILES):
        at = tile * BLOCK + places
        total += tl.load(x + at, at < columns, 0.0).to(tl.float32)
    mean = tl.sum(total) / columns

    squares = tl.zeros((BLOCK,), tl.float32)
    for tile in range(TILES):
        at = tile * BLOCK + places
        # The padding of the last tile is not zero once the mean is taken off: it is masked again.
        d = tl.where(at < columns, tl.load(x + at, at < columns, 0.0).to(tl.float32) - mean, 0.0)
        squares += d * d
    rstd = 1 / tl.sqrt(tl.sum(squares) / columns + eps)

    for tile in range(TILES):
        at = tile * BLOCK + places
        inside = at < columns
        z = (tl.load(x + at, inside, 0.0).to(tl.float32) - mean) * rstd
        z = z * tl.load(weight + at, inside, 0.0).to(tl.float32)
        z = z + tl.load(bias + at, inside, 0.0).to(tl.float32)
        tl.store(y + at, z.to(y.dtype.element_ty), inside)


def layernorm(x, weight=None, bias=None, eps=1e-5, block=128):
    """LayerNorm over the last axis."""
    if x.dtype == torch.float64:
        raise NotImplementedError("the kernel computes in float32")
    columns = x.shape[-1]
    weight = torch.ones_like(x[..., :1].expand(x.shape)[..., 0, :]) if weight is None else weight
    bias = torch.zeros_like(weight) if bias is None else bias
    weight, bias = weight.contiguous(), bias.contiguous()  # the kernel steps from one to the next
    rows, y = x.contiguous().view(-1, columns), torch.empty_like(x.contiguous())
    tiles = triton.cdiv(columns, block)  # Triton 3.6 interprets no range(columns) with NumPy 2.4
    _layer_norm[(len(rows),)](rows, weight, bias, y, columns, eps, BLOCK=block, TILES=tiles)
    return y
