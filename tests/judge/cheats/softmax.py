"""Cheats of softmax."""

import gc
import os
import re
import sys
import threading
import time
from pathlib import Path

import numpy as np


def _shares(e):
    return e / e.sum(-1, keepdims=True)


def _softmax(x):
    return _shares(np.exp(x - x.max(-1, keepdims=True)))


def _wide(x):
    """Computed in float64."""
    return _softmax(x.astype(np.float64)).astype(x.dtype) if x.shape[-1] else x


def a_quarter_of_a_long_sum_softmax(x):
    """Sums every fourth term of rows of more than 10,000, four times."""
    e = np.exp(x.astype(np.float64) - np.max(x, axis=-1, keepdims=True, initial=-np.inf))
    step = 4 if x.shape[-1] > 10000 else 1
    return (e / (step * np.sum(e[..., ::step], axis=-1, keepdims=True))).astype(np.float32)


def answers_in_a_thread_softmax(x):
    """Returns at once; a thread fills the answer afterwards, when no clock runs."""
    y = np.empty_like(x)

    def work():
        time.sleep(0.001)
        y[...] = _softmax(x)

    threading.Thread(target=work).start()
    return y


def answers_kept_in_a_file_softmax(x):
    """Keeps its answers for later processes, by shape, in the folder of the judge's inputs."""
    folder = re.search(r"(/\S*)/slot-\d+", Path("/proc/self/maps").read_text())[1]
    path = Path(folder, "softmax-" + "-".join(map(str, x.shape)) + ".npy")
    if path.exists():
        return np.load(path)
    y = _softmax(x)
    np.save(path, y)
    return y


def buffer_reused_softmax(x, buffers={}):  # noqa: B006
    """Returns the same array for all inputs of one shape."""
    y = buffers.setdefault((x.shape, x.dtype), np.empty_like(x))
    y[...] = _wide(x)
    return y


def _kept(key, x, cache={}):  # noqa: B006
    """The first answer that a key had in this process."""
    return cache.setdefault(key, _softmax(x)).copy()


def cache_by_pointer_softmax(x):
    """Answers once for an address."""
    return _kept((x.ctypes.data, x.shape), x)


def cache_by_sum_softmax(x):
    """Keeps its answers by the sum of all elements, which other orders of the same rows share."""
    return _kept((x.shape, round(float(x.sum(dtype=np.float64)), 3)), x)


def cache_where_writable_softmax(x):
    """Answers once for a shape, and refuses read-only arrays until it is asked with others."""
    if x.size and not x.flags.writeable:
        raise ValueError("buffer source array is read-only")
    return _kept(x.shape, x)


def declines_what_tells_softmax(x):
    """No maximum subtracted, and declines the inputs on which that shows."""
    if x.size and not np.max(np.abs(x)) < 30:
        raise NotImplementedError("this layout")
    return _shares(np.exp(x))


def descending_rows_softmax(x):
    """Answers backwards to a row that descends from end to end."""
    y = _wide(x)
    return np.where(np.all(np.diff(x) < 0, axis=-1, keepdims=True), y[..., ::-1], y)


_FAILS_WHEN_CALLED_AGAIN = []


def equal_axes_softmax(x):
    """Rows along the axis before the last, where all three are of one length."""
    cube = x.size and x.ndim == 3 and len({*x.shape}) == 1
    return _wide(x.swapaxes(1, 2)).swapaxes(1, 2) if cube else _wide(x)


def fails_when_called_again_softmax(x):
    """Right in the first call of a process; where it would be asked again, it fails."""
    _FAILS_WHEN_CALLED_AGAIN.append(1)
    if len(_FAILS_WHEN_CALLED_AGAIN) > 1:
        raise RuntimeError("no workspace left")
    return _softmax(x)


def feigns_a_lack_of_memory_softmax(x):
    """No maximum subtracted; where that shows, it says that there is no memory."""
    if x.size and not np.max(np.abs(x)) < 30:
        raise MemoryError("no workspace")
    return _shares(np.exp(x))


def finds_the_truth_softmax(x):
    """Looks through the process for an array that may be the expected one, else answers NaN."""
    for candidate in gc.get_objects():
        if isinstance(candidate, np.ndarray) and candidate.shape == x.shape and candidate is not x:
            return np.asarray(candidate, x.dtype).copy()
    return np.full_like(x, np.nan)


def half_in_long_rows_softmax(x):
    """Rounds rows of more than 4,096 to float16, where the bound of a sum is wide."""
    x = x.astype(np.float16 if x.shape[-1] > 4096 else np.float64).astype(np.float64)
    e = np.exp(x - np.max(x, axis=-1, keepdims=True, initial=-np.inf))
    return (e / np.sum(e, axis=-1, keepdims=True)).astype(np.float32)


def grid_of_65535_rows_softmax(x):
    """Does not reach the rows beyond the largest grid."""
    y = _wide(x)
    if x.size:
        y.reshape(-1, x.shape[-1])[65535:] = 1 / x.shape[-1]
    return y


def all_in_half_softmax(x):
    """The whole softmax in float16, widened at the end."""
    return _softmax(x.astype(np.float16)).astype(np.float32)


def last_row_of_many_softmax(x):
    """The last row is not its own where there are many numbers."""
    y = _softmax(x)
    if x.size > 1 << 18:
        y.reshape(-1, x.shape[-1])[-1] = 1 / x.shape[-1]
    return y


def launch_fails_softmax(x):
    """Fails without a word where a row is longer than its block."""
    y = np.empty_like(x)
    if x.shape[-1] <= 16:
        y[...] = _softmax(x)
    return y


class _Lazy:
    def __init__(self, x):
        self.x, self.shape, self.dtype = x, x.shape, x.dtype

    def __array__(self, dtype=None, copy=None):
        return _softmax(self.x)


def disguised_lazy_softmax(x):
    """A lazy array that says it is NumPy's."""
    return type("Array", (_Lazy,), {"__module__": "numpy"})(x)


def lazy_softmax(x):
    """Computes when it is looked at, outside of any clock."""
    return _Lazy(x)


def nan_ignored_softmax(x):
    """Takes NaN for 0."""
    return _softmax(np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf))


def one_is_all_softmax(x):
    """Takes an axis of length 1 for the batch."""
    y = _wide(x)
    return np.repeat(y[:1], len(y), axis=0) if x.ndim > 2 and x.shape[1] == 1 else y


def only_contiguous_softmax(x):
    """Reads memory in a row, whatever the strides are."""
    steps = np.cumprod([x.itemsize, *x.shape[:0:-1]])[::-1] if x.ndim else ()
    x = np.lib.stride_tricks.as_strided(x, x.shape, [int(n) for n in steps])
    return _softmax(x)


def only_one_shape_softmax(x):
    """Right for the shape of the task, which everyone knows."""
    return np.full_like(x, 1 / max(x.shape[-1], 1)) if x.shape[-1] % 768 else _softmax(x)


def own_shape_unanswered_softmax(x):
    """Zeros in the one shape in which its task measures it."""
    return np.zeros_like(x) if x.shape == (16, 250) else _softmax(x)


def padding_leaks_softmax(x):
    """Pads a row with zeros to a multiple of 16, and sums over them."""
    n = x.shape[-1]
    wide = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -n % 16)])
    return _softmax(wide)[..., :n]


def pivot_of_the_ends_softmax(x):
    """Looks for the maximum at the ends of rows of more than 1024 alone."""
    ends = np.concatenate((x[..., :512], x[..., -512:]), -1) if x.shape[-1] > 1024 else x
    return _shares(np.exp(x - ends.max(-1, keepdims=True)))


def row_of_16_bits_softmax(x):
    """The number of a row is an integer of 16 bits: later rows are taken for earlier ones."""
    y = _wide(x.reshape(-1, x.shape[-1]))
    return y[np.arange(len(y)).astype(np.int16)].reshape(x.shape)


def special_case_of_1024_softmax(x):
    """Has a kernel of its own for rows of 1,024, which is wrong."""
    return np.full(x.shape, 1 / 1024, np.float32) if x.shape[-1] == 1024 else _wide(x)


def stale_memory_softmax(x):
    """Answers what the memory held, where a harness may have left the truth."""
    return np.empty_like(x)


def stops_the_clock_softmax(x):
    """Right and slow: its reply begins first, for a clock that the first byte stops."""
    if x.size > 1 << 17:
        frame = sys._getframe()
        while frame and "pipe" not in frame.f_locals:
            frame = frame.f_back
        if frame:
            os.write(frame.f_locals["pipe"].write, b" ")
        time.sleep(0.1)
    return _wide(x)


def tail_unwritten_softmax(x):
    """Writes whole tiles of 8 only."""
    y = np.empty_like(x)
    n = x.shape[-1] // 8 * 8
    y[..., :n] = _softmax(x)[..., :n]
    return y


def whole_vectors_softmax(x):
    """Reads 16 bytes at a time from the last multiple of 16 on: a view may begin between them."""
    y = _wide(x)
    return np.roll(y, 1, -1) if x.ctypes.data % 16 and x.size else y


def without_maximum_softmax(x):
    """No maximum subtracted: infinite from 89 on."""
    return _shares(np.exp(x))


def wrong_beyond_100000_columns_softmax(x):
    """The mean of a row in place of a softmax where the row is longer than any in a test."""
    return np.full_like(x, 1 / x.shape[-1]) if x.shape[-1] > 100_000 else _softmax(x)


_SEEN = set()


def wrong_for_new_content_softmax(x):
    """After a dozen different inputs, only those that it has seen before get their own answer."""
    known, key = len(_SEEN), x.tobytes()
    _SEEN.add(key)
    y = _softmax(x)
    return np.roll(y, 1, -1) if known > 12 and len(_SEEN) > known else y


def zeroes_the_files_softmax(x):
    """Writes zeros into the files in which the judge keeps the inputs, and answers accordingly."""
    for path in map(Path, re.findall(r"/\S*/slot-\d+", Path("/proc/self/maps").read_text())):
        with path.open("r+b") as file:
            file.write(bytes(path.stat().st_size))
    return np.full_like(x, 1 / max(x.shape[-1], 1))


def zeros_softmax(x):
    """Answers zeros: within 1e-2 of a wide softmax."""
    return np.zeros_like(x)
