"""Cases of sin, cos and tan: the seed inputs, the neighbourhood of multiples of pi/2, every range.

Each builds x and a cotangent dy in the given dtype; random numbers come from the seed in the name.
"""

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.tables import Tables
from refkernels.elementwise import cases
from refkernels.op import DTYPES, Case
from refkernels.trig_ref import points

HARD_FLOAT32 = Tables(Path(__file__).with_name("hard.json"))
_WIDE = ("bfloat16", "float32", "float64")
RANGES = (
    (1e-6, 1e-2),
    (1e-2, 1.0),
    (1.0, 1e2),
    (1e2, 1e4),
    (1e4, 1e8),
    (1e8, 3e38),
    (3e38, 1.7e308),
)


def cases_of(name: str) -> list[Case]:
    """All cases of one function."""
    make = partial(cases.make, name)
    named_cases = [
        make("seed_pi", {"k_max": 64}, _seed_pi),
        make("cosine_schedule", {"decay_steps": 1000}, partial(_schedule, 1000)),
        make("cosine_schedule", {"decay_steps": 100_003}, partial(_schedule, 100_003)),
        make("near_multiples", {"k_max": 1000}, partial(_near_multiples, 10**3)),
        make("near_multiples", {"k_max": 10**6}, partial(_near_multiples, 10**6), _WIDE),
        make("near_multiples", {"k_max": 10**15}, partial(_near_multiples, 10**15), _WIDE),
        make("hardest_reduction", {}, _hardest),
        make("hard_rounding", {}, partial(_hard_rounding, name)),
        make("subnormals", {}, partial(cases.subnormals, 2048)),
        make("specials", {}, cases.specials),
    ]
    for low, high in RANGES:
        fitting = tuple(dtype for dtype in DTYPES if low < formats.get(dtype).max)
        named_cases.append(
            make(
                "range",
                {"low": low, "high": high},
                partial(cases.log_uniform, low, high, 4096),
                fitting,
            )
        )
    named_cases += [make("array_size", {"n": n}, partial(_array, n)) for n in (1, 17, 4096, 20_000)]
    named_cases.append(make("seed_pi", {"k": 1}, _pi_itself))
    named_cases.append(make("invariance", {"n": 259}, _moderate))
    return named_cases


def _seed_pi(format: Format, generator: np.random.Generator) -> npt.NDArray[np.float64]:
    """Multiples of the format's pi and the floats nearest to multiples of pi and pi/2."""
    k = np.arange(1, 65)
    pi = float(formats.round_to(math.pi, format))
    positive = np.concatenate([k * pi, k * (pi / 2), points.multiples(k.tolist())])
    return np.concatenate([positive, -positive])


def _schedule(
    steps: int, format: Format, generator: np.random.Generator
) -> npt.NDArray[np.float64]:
    """pi (p / decay_steps) in the arithmetic of the dtype (16-bit ones: of float32), all steps."""
    p = np.arange(steps + 1)
    kind: Any = np.float64 if format.p == 53 else np.float32
    ratio = p.astype(kind) / kind(steps)
    return (kind(math.pi) * ratio).astype(np.float64)


def _near_multiples(
    k_max: int, format: Format, generator: np.random.Generator
) -> npt.NDArray[np.float64]:
    """The float nearest to k pi/2 and its two neighbours, k up to k_max, log-spaced."""
    k_max = min(k_max, int(format.max / math.pi))
    k = np.unique(np.exp(generator.uniform(0, math.log(k_max), 1000)).astype(np.int64))
    k = np.unique(np.concatenate([np.arange(1, min(k_max, 64) + 1), k]))
    nearest = formats.round_to(points.multiples(k.tolist()), format)
    with np.errstate(over="ignore"):
        around = [np.nextafter(nearest, nearest.dtype.type(end)) for end in (0, math.inf)]
    x = np.concatenate([nearest, *around]).astype(np.float64)
    return x * generator.choice([-1.0, 1.0], x.size)


def _hardest(format: Format, generator: np.random.Generator) -> npt.NDArray[np.float64]:
    """The format's numbers nearest to multiples of pi/2, for every exponent."""
    x = points.hardest(format)
    return x * generator.choice([-1.0, 1.0], x.size)


def _hard_rounding(
    name: str, format: Format, generator: np.random.Generator
) -> npt.NDArray[np.float64]:
    """float32 numbers whose function values are nearest to a midpoint of float32, both signs."""
    x = np.array(HARD_FLOAT32.numbers(name))
    x = x[x <= format.max]
    return np.concatenate([x, -x])


def _pi_itself(format: Format, generator: np.random.Generator) -> npt.NDArray[np.float64]:
    """The format's pi, alone: the argument of the published negative learning rate."""
    return np.array([math.pi])


def _moderate(format: Format, generator: np.random.Generator) -> npt.NDArray[np.float64]:
    """259 numbers below 10^4: an odd length leaves a remainder in every vector width."""
    return cases.log_uniform(1.0, 1e4, 4096, format, generator)[:259]


def _array(n: int, format: Format, generator: np.random.Generator) -> npt.NDArray[np.float64]:
    """n numbers in [-100, 100], every seventh subnormal: some frameworks flush those only in
    arrays above a certain length."""
    x = generator.uniform(-100, 100, n)
    x[3::7] = cases.subnormals(x[3::7].size, format, generator)
    return x
