"""Cases of ops that are defined by formulas: those that an op lists, or some for any signature."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.op import DIRECTIONS, DTYPES, Case, Direction, Op

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
_WHOLE = {"bool": np.bool_, "int": np.int64, "low": np.int8}  # by the kind of an input


def case(
    op: str,
    regime: str,
    parameters: Mapping[str, int | float | str],
    arrays: Callable[[np.random.Generator, str], Arrays],
    params: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    dtypes: tuple[str, ...] = DTYPES,
    directions: tuple[Direction, ...] = DIRECTIONS,
) -> Case:
    """The case "op/regime[key=value,...,seed=0]". `arrays` draws the inputs and the cotangent in
    float64 from a generator, for a dtype. They are rounded once to that dtype; integers stay
    unchanged."""
    texts = (f"{x:g}" if isinstance(x, float) else str(x) for x in parameters.values())
    listed = ",".join(map("{}={}".format, parameters, texts))
    name = f"{op}/{regime}[{listed}{',' if listed else ''}seed={seed}]"
    build = partial(_build, arrays, dict(params or {}), seed)
    return Case(name, op, regime, dict(parameters), seed, build, dtypes, directions)


def listed(op: str, *described: Any, **shared: Any) -> Callable[[], list[Case]]:
    """The cases of an op, each by what `case` takes after the op's name; `shared`: by name. They
    are appended, never changed."""
    return lambda: [case(op, *arguments, **shared) for arguments in described]


def _build(
    arrays: Callable[[np.random.Generator, str], Arrays],
    params: dict[str, Any],
    seed: int,
    dtype: str,
) -> tuple[Arrays, dict[str, Any]]:
    drawn = arrays(np.random.default_rng(seed), dtype)
    inputs = {
        name: formats.round_to(array, dtype) if array.dtype == np.float64 else array
        for name, array in drawn.items()
    }
    return inputs, dict(params)


def of_signature(op: Op) -> list[Case]:
    """Normal numbers on short axes and on long ones, and large numbers without optional inputs;
    whole numbers below every length, which may be classes or rows. None with a list of arrays."""
    assert op.formulas is not None
    takes = op.formulas.of(op.directions[-1]).signature.takes
    axes = list(dict.fromkeys(x for argument in takes.values() for x in argument.letters))

    def of(seed: int, regime: str, size: float, shortest: int) -> Case:
        lengths = {x: int(x) if x.isdigit() else shortest + 2 * k for k, x in enumerate(axes)}

        def arrays(rng: np.random.Generator, dtype: str) -> Arrays:
            made = {
                name: size * rng.standard_normal(shape)
                if argument.kind == "float"
                else rng.integers(0, min(shortest, 100), shape).astype(_WHOLE[argument.kind])
                for name, argument in takes.items()
                if regime == "normal" or not argument.optional
                for shape in [[lengths[x] for x in argument.letters]]
            }
            return without_nan(op, made, op.differentiated or op.inputs, formats.BINARY64)

        given = op.name, regime, lengths, arrays, op.params
        return case(*given, seed=seed, directions=op.directions)

    if any(argument.several for argument in takes.values()):
        return []
    long = min(2 ** (16 // max(len(axes), 1)), 1024)
    return [of(0, "normal", 1.0, 4), of(1, "normal", 1.0, long), of(2, "large", 8.0, 4)]


def without_nan(
    op: Op, inputs: Mapping[str, Any], names: Iterable[str], format: Format
) -> dict[str, Any]:
    """The inputs; where numbers of both signs give NaN, with the sizes of these."""
    answers = op.plain("forward", inputs, {}, format).values()
    undefined = any(np.isnan(np.asarray(y, float)).any() for y in answers)
    return {**inputs, **{n: np.abs(inputs[n]) for n in names if undefined and n in inputs}}


def drawn(**described: Any) -> Callable[[np.random.Generator, str], Arrays]:
    """Arrays by name: a shape of normal numbers, of the size NAME_size, or what a function of the
    generator gives."""

    def build(rng: np.random.Generator, dtype: str) -> Arrays:
        return {
            name: how(rng)
            if callable(how)
            else described.get(f"{name}_size", 1.0) * rng.standard_normal(how)
            for name, how in described.items()
            if not name.endswith("_size")
        }

    return build


def whole(least: int, most: int, shape: Any) -> Callable[[np.random.Generator], npt.NDArray[Any]]:
    """Whole numbers from `least` up to, and without, `most`."""
    return lambda rng: rng.integers(least, most, shape)


def with_specials(
    arrays: Callable[[np.random.Generator, str], Arrays], **specials: float
) -> Callable[[np.random.Generator, str], Arrays]:
    """With one number of each named array replaced."""

    def build(rng: np.random.Generator, dtype: str) -> Arrays:
        made = arrays(rng, dtype)
        for name, value in specials.items():
            made[name].flat[made[name].size // 2] = value
        return made

    return build
