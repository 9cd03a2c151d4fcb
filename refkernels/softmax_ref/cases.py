"""The inputs on which softmax and log_softmax are measured, by regime."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from refkernels.op import Case
from refkernels.ops.axes import axes_of
from refkernels.ops.cases import Arrays, case, drawn, listed, with_specials

Generator = np.random.Generator


def cases_of(op: str) -> list[Case]:
    """All cases. Appended, never changed."""
    make = partial(_reduced, op) if op == "logsumexp" else partial(case, op)
    return [
        *(
            make("row_length", {"n": n}, partial(_normal, n, 0.0, 3.0))
            for n in (2, 3, 17, 50, 1024, 65536)
        ),
        *(
            make("offset", {"offset": offset, "n": 50}, partial(_normal, 50, offset, 1.0))
            for offset in (-1e4, 1e2, 1e4)
        ),
        *(
            make("spread", {"spread": spread, "n": 50}, partial(_uniform, spread))
            for spread in (1.0, 1e1, 1e2, 1e4)
        ),
        *(
            make("confident", {"gap": gap, "n": 17}, partial(_confident, gap))
            for gap in (5.0, 20.0, 60.0)
        ),
        make("equal", {}, _equal),
        make("constant_cotangent", {}, _constant_cotangent),
        make("sorted", {"n": 257}, _sorted),
        make("masked", {"n": 50}, _masked),
        make("masked", {"of": "all but one", "n": 7}, _all_but_one),
        make("axis", {"axis": 1}, _cube, {"axis": 1}),
        make("specials", {}, _specials),
        make("invariance", {"rows": 37, "n": 257}, partial(_normal, 257, 0.0, 3.0, rows=37)),
        make("axis", {"axis": 0}, _cube, {"axis": 0}),
        *(
            make("axis", {"axis": name}, _cube, {"axis": axis})
            for name, axis in (("0,2", [0, 2]), ("all", None))
            if op == "logsumexp"
        ),
        make("masked", {"of": "row 37 of 64", "n": 12}, _one_row),
        # Last, because after it MindSpore 2.10 leaves the sum out of every gradient of softmax.
        make("row_length", {"n": 1}, partial(_normal, 1, 0.0, 3.0)),
    ]


def _reduced(
    op: str, regime: str, parameters: Any, arrays: Any, params: Any = None, **options: Any
) -> Case:
    """A case with the same x, and a cotangent that lacks the axis."""

    def made(rng: Generator, dtype: str) -> Arrays:
        arrays_of_case = arrays(rng, dtype)
        dy, x = arrays_of_case["dy"], arrays_of_case["x"]
        for axis in sorted(axes_of((params or {}).get("axis", -1), x.shape), reverse=True):
            dy = np.take(dy, 0, axis)
        return {"dy": np.asarray(dy), "x": x}

    return case(op, regime, parameters, made, params, **options)


def _with_dy(rng: Generator, x: Any) -> Arrays:
    return {"dy": rng.standard_normal(x.shape), "x": x}


def _normal(
    n: int, offset: float, spread: float, rng: Generator, dtype: str, rows: int | None = None
) -> Arrays:
    rows = rows or int(np.clip(8192 // n, 2, 32))
    return _with_dy(rng, offset + spread * rng.standard_normal((rows, n)))


def _uniform(spread: float, rng: Generator, dtype: str) -> Arrays:
    return _with_dy(rng, rng.uniform(-spread, spread, (32, 50)))


def _confident(gap: float, rng: Generator, dtype: str) -> Arrays:
    """One class lies above the others by `gap`."""
    x = rng.standard_normal((32, 17))
    x[np.arange(32), rng.integers(0, 17, 32)] += gap
    return _with_dy(rng, x)


def _equal(rng: Generator, dtype: str) -> Arrays:
    values = np.array([0.0, 1.0, -0.1, 100.0, -1e4, 3.14159])
    return _with_dy(rng, np.repeat(values[:, None], 7, axis=1))


def _constant_cotangent(rng: Generator, dtype: str) -> Arrays:
    """dx of softmax is exactly 0."""
    dy = np.array([1.0, -0.1, 3.14159, 0.0])[:, None]
    return {"dy": np.repeat(dy, 50, axis=1), "x": 3.0 * rng.standard_normal((4, 50))}


def _sorted(rng: Generator, dtype: str) -> Arrays:
    """Each x larger than the one before: an online kernel rescales its sum at every step."""
    return _with_dy(rng, np.sort(rng.standard_normal((8, 257)), axis=1))


def _masked(rng: Generator, dtype: str) -> Arrays:
    """30 of 50 logits are -inf."""
    x = 3.0 * rng.standard_normal((32, 50))
    x[np.argsort(rng.random(x.shape), axis=1) < 30] = -np.inf
    return _with_dy(rng, x)


def _all_but_one(rng: Generator, dtype: str) -> Arrays:
    x = np.where(np.eye(7, dtype=bool), rng.standard_normal((7, 7)), -np.inf)
    return _with_dy(rng, x)


def _one_row(rng: Generator, dtype: str) -> Arrays:
    """One row among many is masked as a whole: it must not change the others' answers."""
    x = rng.standard_normal((64, 12))
    x[37] = -np.inf
    return _with_dy(rng, x)


def _cube(rng: Generator, dtype: str) -> Arrays:
    """An axis that is not the last."""
    return _with_dy(rng, 3.0 * rng.standard_normal((3, 50, 5)))


def _specials(rng: Generator, dtype: str) -> Arrays:
    """NaN, both infinities, and a row that is masked as a whole."""
    x = rng.standard_normal((6, 5))
    x[1, 2], x[2, 0], x[3, 4], x[4] = np.nan, np.inf, -np.inf, -np.inf
    x[5, 1], x[5, 3] = np.inf, -np.inf
    return _with_dy(rng, x)


def selective_cases() -> list[Case]:
    """All cases. Appended, never changed."""
    make = partial(case, "selective_log_softmax")
    return [
        make("classes", {"n": 17}, partial(_chosen, partial(_normal, 17, 0.0, 3.0))),
        make("classes", {"n": 1024}, partial(_chosen, partial(_normal, 1024, 0.0, 3.0))),
        make("confident", {"gap": 20}, partial(_chosen, partial(_confident, 20.0))),
        *(
            make(
                "temperature", {"T": heat}, partial(_chosen, partial(_normal, 50, 0.0, 3.0)),
                {"temperature": heat},
            )
            for heat in (0.7, 2.0)
        ),
        make("masked", {"n": 50}, partial(_chosen, _masked)),
        make("specials", {}, partial(_chosen, _specials)),
        make("invariance", {"rows": 37}, partial(_chosen, partial(_normal, 67, 0.0, 3.0, rows=37))),
    ]  # fmt: skip


def _chosen(arrays: Any, rng: Generator, dtype: str) -> Arrays:
    """The rows of a case, each with a class; every second one is the likeliest."""
    made = arrays(rng, dtype)
    rows, n = made["x"].shape[:-1], made["x"].shape[-1]
    target = np.where(np.arange(rows[-1]) % 2, rng.integers(0, n, rows), made["x"].argmax(-1))
    return {"dy": rng.standard_normal(rows), "x": made["x"], "target": target}


def _scores(rows: int, n: int, size: float = 3.0, **specials: float) -> Any:
    return with_specials(drawn(dy=(rows, n), x=(rows, n), x_size=size), **specials)


CUMULATIVE = listed(
    "logcumsumexp",
    ("row_length", {"n": 17}, _scores(32, 17)),
    ("row_length", {"n": 65}, _scores(16, 65)),
    ("spread", {"spread": 100.0}, _scores(9, 50, 100.0)),
    ("axis", {"axis": 0}, _scores(12, 5), {"axis": 0}),
    ("masked", {"n": 12}, _scores(5, 12, x=-np.inf)),
    ("specials", {}, _scores(5, 12, x=np.nan)),
    ("invariance", {"rows": 37}, _scores(37, 19)),
)
_TOP_P = {"temperature": 0.7, "top_p": 0.9}
SAMPLING = listed(
    "sampling_softmax",
    ("top_p", {"top_p": 0.5, "n": 1024}, _scores(4, 1024), {"top_p": 0.5}),
    ("top_p", {"top_p": 0.9, "n": 32}, _scores(9, 32), {"top_p": 0.9}),
    ("top_k", {"top_k": 5}, _scores(9, 32), {"top_k": 5}),
    ("min_p", {"min_p": 0.05}, _scores(9, 32), {"min_p": 0.05}),
    ("temperature", {"temperature": 0.25}, _scores(9, 32), {"temperature": 0.25}),
    ("all", {"n": 64}, _scores(9, 64), {**_TOP_P, "top_k": 20, "min_p": 0.02}),
    ("masked", {"n": 12}, _scores(5, 12, x=-np.inf), _TOP_P),
    ("specials", {}, _scores(5, 12, x=np.nan), _TOP_P),
    ("invariance", {"rows": 37}, _scores(37, 19), _TOP_P),
)
