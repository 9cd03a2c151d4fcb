"""One line for one direction of each op, in a hunt for both: a digest of all its answers, in one of
two formats in turn.

python mode_digests.py TURN MODE...   everything imported in the first mode, and run in one of the
modes in turn; TURN is a number, by which other modes and formats meet
"""

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from modes import set_mode

sys.path.append(str(Path(__file__).parents[1]))
from hunting import one_way

Inputs = dict[str, np.ndarray]
DTYPES = ("float32", "float64")


def questions() -> dict[tuple[str, str], Inputs]:
    """The arrays of every kind of op, by kind and dtype: ordinary, tiny, subnormal and huge."""
    rng = np.random.default_rng(1)
    spread = np.exp(rng.uniform(-300, 300, 40))
    subnormal = rng.standard_normal(12) * 1e-310, rng.standard_normal(8) * 1e-41
    x = np.concatenate([rng.standard_normal(40), *subnormal, spread, np.zeros(20)])
    arrays = {}
    with np.errstate(all="ignore"):
        for dtype in DTYPES:
            a, b = x.astype(dtype), rng.permutation(x).astype(dtype)
            rows, columns, square = a.reshape(6, 20), b.reshape(20, 6), np.outer(a[:6], b[:6])
            square = square.astype(dtype)
            line, bias = rng.permutation(a)[:20], b[:20]
            arrays["matmul", dtype] = {"a": rows, "b": columns, "dc": square}
            arrays["linear", dtype] = {
                "x": rows, "weight": b.reshape(6, 20), "bias": line[:6], "dy": square,
            }  # fmt: skip
            arrays["layernorm", dtype] = {
                "x": rows, "weight": line, "bias": bias, "dy": b.reshape(6, 20),
            }  # fmt: skip
            arrays["elementwise", dtype] = {"x": a, "dy": b}
    return arrays


def digests(
    arrays: dict[tuple[str, str], Inputs], turn: int, modes: Sequence[str] = ()
) -> list[str]:
    """What every op answers: enclosures, certified roundings, bounds, conditions, plain."""
    from refkernels import registry
    from refkernels.arithmetic.formats import BINARY32
    from refkernels.metrology import judge

    lines: list[str] = []
    ways = ((op.name, way) for op in registry.ops().values() for way in op.directions)
    for name, direction in one_way(ways):
        op, dtype = registry.get(name), DTYPES[(len(lines) + turn) % 2]
        if modes:
            set_mode(modes[(len(lines) + turn) % len(modes)])
        taken, params = _question(op, direction, dtype, arrays)
        inputs = {key: taken[key] for key in op.takes(direction) if key in taken}
        question = (direction, inputs, params)
        exact = op.evaluate(*question)
        rounded = op.evaluate(*question, ("rounding", dtype))
        bound, plain = (f(*question, BINARY32) for f in (op.bound, op.plain))
        condition = op.condition(*question)
        output = op.names(direction)[0]
        record = judge(
            op, direction, output, plain[output], exact[output], bound=bound[output],
            inputs=inputs, params=params,
        )  # fmt: skip
        parts = [_bits(part) for part in (exact, rounded, bound, plain, condition)]
        digest = hashlib.sha256(repr([*parts, record]).encode()).hexdigest()[:16]
        lines.append(f"{name} {direction} {dtype} {digest}")
    return lines


def _question(op: Any, direction: Any, dtype: str, arrays: Any) -> tuple[Inputs, dict[str, Any]]:
    """Hard numbers where the op takes any; a case of its own where it has labels, states, axes."""
    if op.elementwise and op.inputs == ("x",):
        return arrays["elementwise", dtype], {}
    if (op.name, dtype) in arrays:
        return arrays[op.name, dtype], {}
    cases = (case for case in op.cases() if dtype in case.dtypes and direction in case.directions)
    return next(cases).build(dtype)


def _bits(answer: dict[str, Any]) -> list[bytes]:
    parts = []
    for value in answer.values():
        names = ("hi", "lo", "radius", "scale") if hasattr(value, "hi") else ()
        arrays = [getattr(value, name) for name in names] or [value]
        parts += [np.ascontiguousarray(array).tobytes() for array in arrays]
    return parts


if __name__ == "__main__":
    prepared, modes = questions(), sys.argv[2:]
    set_mode(modes[0])
    print(*digests(prepared, int(sys.argv[1]), modes), sep="\n")
