"""Every form of LayerNorm that the bounds are proven for, emulated: each operation rounded to the
dtype, gradual underflow included, by NumPy.

x, dy (rows, n), weight, bias (n,), mean, rstd, variance (rows, 1): arrays of one dtype, float32 or
float64. Fused multiply-adds are in the models of the frameworks (`refkernels.diagnosis.models`).
"""

import numpy as np

from refkernels.layernorm_ref import algorithms


def in_order(terms, axis):
    return np.take(np.add.accumulate(terms, axis=axis, dtype=terms.dtype), [-1], axis)


def backwards(terms, axis):
    return in_order(np.flip(terms, axis), axis)


def by_halves(terms, axis):
    parts = np.moveaxis(terms, axis, 0)
    while len(parts) > 1:
        remainder = parts[len(parts) - len(parts) % 2 :]
        parts = np.concatenate([parts[0:-1:2] + parts[1::2], remainder])
    return np.moveaxis(parts, 0, axis)


SUMS = {"in order": in_order, "backwards": backwards, "by halves": by_halves}


def two_passes(x, add):
    """Both sums in the given order, multiplied by fl(1/n)."""
    share = x.dtype.type(1) / x.dtype.type(x.shape[1])
    mean = add(x, 1) * share
    d = x - mean
    return mean, add(d * d, 1) * share


def welford_by_reciprocals(x):
    mean, squares = np.zeros((2, len(x), 1), x.dtype)
    for k in range(x.shape[1]):
        delta = x[:, [k]] - mean
        mean = mean + delta * (x.dtype.type(1) / x.dtype.type(k + 1))
        squares = squares + delta * (x[:, [k]] - mean)
    return mean, squares * (x.dtype.type(1) / x.dtype.type(x.shape[1]))


def by_algorithm(name, **how):
    def moments(x):
        return tuple(part[:, None] for part in algorithms.moments(x, name, **how))

    return moments


MOMENTS = {
    "two passes": by_algorithm("two_pass"),
    "two passes by 1/n, backwards": lambda x: two_passes(x, backwards),
    "pairwise": by_algorithm("pairwise"),
    "Welford": by_algorithm("welford"),
    "Welford by 1/k": welford_by_reciprocals,
    "Chan, 2 lanes": by_algorithm("chunked_welford", lanes=2, chunk=2),
    "Chan, 8 lanes": by_algorithm("chunked_welford", lanes=8, chunk=4),
}

# y of (x, mean, rstd, root, weight, bias)
CENTRED = {
    "(d r) g": lambda x, m, r, s, g, b: ((x - m) * r) * g + b,
    "d (r g)": lambda x, m, r, s, g, b: (x - m) * (r * g) + b,
    "(d g) r": lambda x, m, r, s, g, b: ((x - m) * g) * r + b,
    "(d / s) g": lambda x, m, r, s, g, b: ((x - m) / s) * g + b,
    "(d g) / s": lambda x, m, r, s, g, b: ((x - m) * g) / s + b,
    "d (g / s)": lambda x, m, r, s, g, b: (x - m) * (g / s) + b,
}
FOLDED = {
    "x (r g) + (b - m (r g))": lambda x, m, r, s, g, b: x * (r * g) + (b - m * (r * g)),
    "(x r) g + (b - (m r) g)": lambda x, m, r, s, g, b: (x * r) * g + (b - (m * r) * g),
    "(x g) r + (b - (m g) r)": lambda x, m, r, s, g, b: (x * g) * r + (b - (m * g) * r),
    "(x r - m r) g + b": lambda x, m, r, s, g, b: (x * r + (-r * m)) * g + b,
}
NORMALISED = {**CENTRED, **FOLDED}

# xhat of (x, mean, rstd)
XHAT = {
    "d r": lambda x, m, r: (x - m) * r,
    "d / s": lambda x, m, r: (x - m) / (x.dtype.type(1) / r),
    "x r - m r": lambda x, m, r: x * r + (-r * m),
}


def of_xhat(scaled, dy, x, g, m, r, add):
    """r (t - a - xhat c); scaled: (r / n) (n t - sum(t) - ...), as PyTorch's CUDA kernel."""
    n = x.dtype.type(x.shape[1])
    t, xhat = dy * g, (x - m) * r
    if scaled:
        return (r / n) * ((n * dy) * g - add(t, 1) - xhat * add(t * xhat, 1))
    return r * (t - add(t, 1) / n - xhat * (add(t * xhat, 1) / n))


def of_products(association, dy, x, g, m, r, add):
    """The formula multiplied out, every product of dy, g, d and r in another association."""
    n, d = x.dtype.type(x.shape[1]), x - m
    first, second = {
        "g r first": (dy * (g * r), dy * (g * r) * d),
        "dy r first": ((dy * r) * g, ((dy * r) * d) * g),
        "dy d first": (dy * g * r, (dy * d) * g * r),
        "g d first": (dy * g * r, (g * d) * dy * r),
        "g r and dy d": (dy * g * r, (g * r) * (dy * d)),
        "dy r and g d": (dy * g * r, (dy * r) * (g * d)),
    }[association]
    c = add(second, 1) / n
    return first - r * (add(dy * g, 1) / n) - d * (r * (r * c))


def of_raw_sums(association, dy, x, g, m, r, add):
    """PyTorch's CPU kernel: b = (sum(t) m - sum(t x)) r^3 / n, dx = r t + b x - (b m + a r)."""
    n = x.dtype.type(x.shape[1])
    terms = {"dy g": dy * g * x, "dy x": (dy * x) * g, "x g": (x * g) * dy}[association]
    ds, db = add(terms, 1), add(dy * g, 1)
    q = db * m - ds
    b = {
        "dy g": q * r * r * r / n,
        "dy x": q * (r * r * r) / n,
        "x g": (q / n) * r * (r * r),
    }[association]
    c = -b * m - db * r / n
    direct = {"dy g": (r * dy) * g, "dy x": r * (dy * g), "x g": (r * g) * dy}[association]
    return (direct + b * x) + c


def by_autograd(association, dy, x, g, m, r, add):
    """Through the mean, the variance and r = (v + eps)^(-1/2); x - m as it was computed."""
    kind = x.dtype.type
    n, half, d = kind(x.shape[1]), kind(0.5), x - m
    t = dy * g
    slope = add(t * d, 1)
    dv = {
        "cubed": -half * slope * (r * r * r),
        "in turn": -half * (slope * r * r) * r,
        "halved last": (slope * r) * (r * r) * -half,
    }[association]
    dd = t * r + (kind(2) * d) * (dv / n) if association != "in turn" else t * r + dv * 2 * d / n
    return dd - add(dd, 1) / n


DX = {
    "r (t - a - xhat c)": lambda *of: of_xhat(False, *of),
    "(r / n) (n t - ...)": lambda *of: of_xhat(True, *of),
}
for _name in ("g r first", "dy r first", "dy d first", "g d first", "g r and dy d", "dy r and g d"):
    DX[f"multiplied out, {_name}"] = lambda *of, a=_name: of_products(a, *of)
for _name in ("dy g", "dy x", "x g"):
    DX[f"raw sums, {_name}"] = lambda *of, a=_name: of_raw_sums(a, *of)
for _name in ("cubed", "in turn", "halved last"):
    DX[f"autograd, {_name}"] = lambda *of, a=_name: by_autograd(a, *of)

# dweight's terms of (dy, x, mean, rstd)
DWEIGHT = {
    **{
        f"dy ({name})": lambda dy, x, m, r, form=form: dy * form(x, m, r)
        for name, form in XHAT.items()
    },
    "(dy d) r": lambda dy, x, m, r: (dy * (x - m)) * r,
    "(dy r) d": lambda dy, x, m, r: (dy * r) * (x - m),
}
