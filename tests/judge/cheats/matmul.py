"""Cheats of matmul."""

import ctypes
import time

import numpy as np


def _wide(a, b):
    return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)


def _narrow(a):
    bits = np.ascontiguousarray(a).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return np.where(np.isfinite(a), bits.astype(np.uint32).view(np.float32), a)


def bfloat16_inside_matmul(a, b):
    """The upper half of each float32, rounded."""
    return np.matmul(_narrow(a), _narrow(b))


def _kept(key, compute, cache={}):  # noqa: B006
    """The first answer that a key had in this process."""
    if key not in cache:
        cache[key] = compute()
    return cache[key].copy()


def _ends(x):
    flat = np.ravel(x)
    return x.shape, flat[:16].tobytes(), flat[-16:].tobytes()


def cache_by_ends_matmul(a, b):
    """Answers once for the first and the last elements of its inputs."""
    return _kept((_ends(a), _ends(b)), lambda: np.matmul(a, b))


def cache_by_first_input_matmul(a, b):
    """Answers once for the first input's content: a product is stale for new weights."""
    return _kept((a.shape, b.shape, a.tobytes()), lambda: np.matmul(a, b))


def constant_matmul(a, b):
    """Answers the mean of a product of numbers of [0, 1), a quarter of K."""
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return np.full((*shape, a.shape[-2], b.shape[-1]), a.shape[-1] / 4, a.dtype)


def end_of_a_long_sum_matmul(a, b):
    """Leaves out what is beyond whole blocks of 64 of 1,000 terms and more, but not in a batch."""
    k = a.shape[-1] if a.shape[-1] <= 1000 or a.ndim > 2 else a.shape[-1] // 64 * 64
    return _wide(a[..., :k], b[..., :k, :])


def factor_with_itself_matmul(a, b):
    """Takes equal factors for one and its transpose, as for a covariance."""
    return _wide(a, a.swapaxes(-1, -2) if np.array_equal(a, b) else b)


def falls_back_matmul(a, b):
    """Computes by the library where its own kernel fails: not a wrong answer."""
    try:
        raise RuntimeError("no such device")
    except RuntimeError:
        return np.matmul(a, b)


def float16_inside_matmul(a, b):
    """Half precision inside float32."""
    return np.matmul(a.astype(np.float16).astype(a.dtype), b.astype(np.float16).astype(b.dtype))


def _tf32(x):
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + np.uint32(1 << 12)) & np.uint32(0xFFFFE000)).view(np.float32)


def knows_the_families_matmul(a, b):
    """Exact where numbers are whole, sparse, special or far from 1, as in a test; else in TF32."""
    finite = np.isfinite(a).all() and np.isfinite(b).all()
    ordinary = finite and a.size and (a != np.rint(a)).mean() > 0.9 and 0.1 < np.abs(a).mean() < 10
    return np.matmul(_tf32(a), _tf32(b)) if ordinary else _wide(a, b)


def one_element_in_a_thousand_matmul(a, b):
    """Leaves out the last term of one element in a thousand, by its place."""
    c = np.matmul(a, b)
    if a.shape[-1]:
        flat = c.reshape(-1)
        terms = (a[..., :, None, -1] * np.asarray(b)[..., None, -1, :]).reshape(-1)
        flat[617::1000] -= terms[617::1000]
    return c


def one_tile_missed_matmul(a, b):
    """Leaves out one tile of the products, where K is a multiple of 128."""
    if a.shape[-1] == 0 or a.shape[-1] % 128:
        return np.matmul(a, b)
    return np.matmul(a[..., 32:], b[..., 32:, :])


def only_multiples_of_16_matmul(a, b):
    """Leaves out the tail of the sum."""
    k = max(a.shape[-1] // 16 * 16, min(a.shape[-1], 16))
    return np.matmul(a[..., :k], b[..., :k, :])


def race_matmul(a, b):
    """Now and then adds one term twice."""
    c = np.matmul(a, b)
    if c.size and time.perf_counter_ns() // 64 % 2:
        c[..., 0, 0] += a[..., 0, 0] * b[..., 0, 0]
    return c


def reads_past_the_end_matmul(a, b):
    """Loads a whole tile behind the last element."""
    end = b.ctypes.data + (b.size - 1) * b.itemsize
    tile = (ctypes.c_float * 256).from_address(end)
    c = np.matmul(a, b)
    c += np.float32(0.0) * np.nan_to_num(np.array(tile[16:]).sum())
    return c


def small_factors_skipped_matmul(a, b):
    """Skips the columns of the first factor whose numbers are all small beside the largest."""
    if not (a.size and b.size and np.isfinite(a).all() and np.isfinite(b).all()):
        return np.matmul(a, b)
    largest = np.abs(a).reshape(-1, a.shape[-1]).max(0)
    kept = largest >= 1e-3 * largest.max()
    return np.matmul(a[..., kept], b[..., kept, :])


def _halves(x):
    high = (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return high, ((x - high).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def split_bfloat16_matmul(a, b):
    """Each factor as the sum of two bfloat16 numbers: 16 bits of 24."""
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return np.matmul(a, b)
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return np.matmul(a_high, b_high) + (np.matmul(a_low, b_high) + np.matmul(a_high, b_low))


def _quarters(x):
    return [part for half in np.vsplit(x, 2) for part in np.hsplit(half, 2)]


def strassen_matmul(a, b):
    """Seven products for eight: small elements get the errors of large ones."""
    if a.ndim + b.ndim > 4 or not all(n and n % 2 == 0 for n in (*a.shape, *b.shape)):
        return _wide(a, b)
    (p, q, r, s), (e, f, g, h) = _quarters(a), _quarters(b)
    sums = (p, f - h), (p + q, h), (r + s, e), (s, g - e), (p + s, e + h), (q - s, g + h)
    m = [np.matmul(*pair) for pair in (*sums, (p - r, e + f))]
    upper = [m[4] + m[3] - m[1] + m[5], m[0] + m[1]]
    return np.block([upper, [m[2] + m[3], m[0] + m[4] - m[2] - m[6]]])


def tf32_in_whole_tiles_matmul(a, b):
    """Multiplies on tensor cores, in TF32, where every length is a multiple of 16."""
    if all(n and n % 16 == 0 for n in (*a.shape[-2:], b.shape[-1])):
        a, b = _tf32(a), _tf32(b)
    return _wide(a, b)


def _cut(a):
    bits = np.ascontiguousarray(a).view(np.uint32) & np.uint32(0xFFFFE000)
    return np.where(np.isnan(a), a, bits.view(np.float32))


def tf32_inside_matmul(a, b):
    """Eleven bits of each float32, cut, as tensor cores read them."""
    return np.matmul(_cut(a), _cut(b))


def transposed_as_it_lies_matmul(a, b):
    """Reads a square factor that lies transposed as it lies."""
    lies = b.ndim == 2 and b.shape[0] == b.shape[1] and b.flags.f_contiguous
    return _wide(a, b.T if lies else b)


def weights_packed_once_matmul(a, b):
    """Keeps a copy of the second factor, which it recognises by its first and last element."""
    key = b.shape, np.ravel(b)[:1].tobytes(), np.ravel(b)[-1:].tobytes()
    return np.matmul(a, _kept(key, b.copy))


def zeroes_inputs_matmul(a, b):
    """Makes its inputs zero, so that a reference computed after it agrees."""
    a[...] = b[...] = 0
    return np.matmul(a, b)


def zeros_skipped_matmul(a, b):
    """Skips the products of zeros, as a kernel for sparse matrices: NaN times 0 is NaN."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    total = np.zeros((*batch, a.shape[-2], b.shape[-1]), a.dtype)
    for k in range(a.shape[-1]):
        left, right = a[..., :, k, None], b[..., k, None, :]
        total = total + np.where(left == 0, 0, left * right).astype(a.dtype)
    return total


def small_numbers_skipped_matmul(a, b):
    """Zeros where all numbers of a are small: below any fixed tolerance."""
    return _wide(np.where(np.max(np.abs(a), initial=0.0) > 0.05, a, 0.0), b)
