"""Writes refkernels/trig_ref/hard.json: the float32 in [2^-10, 2^20) that are hardest to round.

    python tools/find_hard_float32.py

float64 finds the candidates among all float32 there, with a margin for its own error; the certified
oracle sorts them.
"""

import json
import math
from pathlib import Path

import numpy as np
from numba import njit, prange

from refkernels import trig_ref
from refkernels.arithmetic import formats

TARGET = Path(__file__).parents[1] / "refkernels" / "trig_ref" / "hard.json"
KEPT = 16
LOW, HIGH = (int(np.float32(2.0**e).view(np.uint32)) for e in (-10, 20))
ABOUT = (
    "Written by tools/find_hard_float32.py, which tries all float32 in [2^-10, 2^20): those whose "
    "function value lies nearest to a midpoint of two float32."
)


@njit(parallel=True)
def near_midpoints(code, bits, flags):
    for i in prange(bits.size):
        x = np.float64(bits[i])
        y = math.sin(x) if code == 0 else math.cos(x) if code == 1 else math.tan(x)
        units = math.ldexp(abs(y), 24 - math.frexp(y)[1])
        flags[i] = abs(units - math.floor(units) - 0.5) < 2.0**-22


def candidates(code):
    near = []
    for start in range(LOW, HIGH, 1 << 23):
        bits = np.arange(start, min(start + (1 << 23), HIGH), dtype=np.uint32).view(np.float32)
        flags = np.zeros(bits.size, np.bool_)
        near_midpoints(code, bits, flags)
        near.append(bits[flags])
    return np.concatenate(near)


def distance(enclosure):
    """|f(x) - midpoint| in float32 ulp, by the double-double."""
    _, exponent = np.frexp(enclosure.hi)
    units = np.ldexp(np.abs(enclosure.hi), formats.BINARY32.p - exponent)
    low = np.ldexp(enclosure.lo * np.sign(enclosure.hi), formats.BINARY32.p - exponent)
    return np.abs((units - np.floor(units) - 0.5) + low)


def main():
    tables = {}
    for code, name in enumerate(("sin", "cos", "tan")):
        x = candidates(code)
        order = np.argsort(distance(getattr(trig_ref, name)(x.astype(np.float64))))[:KEPT]
        tables[name] = {"about": name, "rows": [float(v).hex() for v in x[order]]}
        print(name, x.size, np.log2(distance(getattr(trig_ref, name)(x[order].astype(np.float64)))))
    TARGET.write_text(json.dumps({"about": ABOUT, "tables": tables}, indent=1) + "\n")


if __name__ == "__main__":
    main()
