"""The peers: NumPy, mpmath, gmpy2, python-flint's Arb, and torch in its own interpreter."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from refkernels.frameworks.gateway import Session

Array = np.ndarray
MATMUL = {"longdouble": 16, "arb_mat, 106 bits": 16, "gmpy2, 113 bits": 4, "mpmath, 113 bits": 1}
"""How many rows and columns of the product each slow peer computes."""
FUNCTIONS = ("sin", "cos", "exp", "log", "tanh", "erf")
"""The functions that the slow peers have, under these names."""
CALLS = {"NumPy longdouble": 20_000, "Arb, 106 bits": 2_000, "gmpy2, 113 bits": 2_000,
         "mpmath, 113 bits": 100}  # fmt: skip
"""How many elements of an elementwise function each slow peer computes."""


def module(name: str) -> Any:
    """The module `name`. Raises RuntimeError with what to install."""
    try:
        return importlib.import_module(name)
    except ImportError:
        distribution = {"flint": "python-flint"}.get(name, name)
        raise RuntimeError(f"not installed: pip install {distribution}") from None


def product(who: str, a: Array, b: Array) -> Callable[[], None]:
    """The first rows and columns of a @ b by a slow peer."""
    m = min(MATMUL[who], len(a))
    rows, columns = a[:m].astype(np.float64), np.ascontiguousarray(b[:, :m].astype(np.float64))
    prepared: list[Any] = []

    def run() -> None:
        if not prepared:
            prepared.append(_prepare(who, rows, columns))
        prepared[0]()

    return run


def _prepare(who: str, rows: Array, columns: Array) -> Callable[[], Any]:
    if who == "longdouble":
        left, right = rows.astype(np.longdouble), columns.astype(np.longdouble)
        return lambda: left @ right
    if who.startswith("arb_mat"):
        flint = module("flint")
        flint.ctx.prec = 106
        matrices = [flint.arb_mat(array.tolist()) for array in (rows, columns)]
        return lambda: matrices[0] * matrices[1]
    if who.startswith("gmpy2"):
        gmpy2 = module("gmpy2")
        lists = [[[gmpy2.mpfr(x) for x in line] for line in array] for array in (rows, columns.T)]
        context = gmpy2.context(precision=113)

        def dots() -> None:
            with context:
                for row in lists[0]:
                    for column in lists[1]:
                        sum(map(gmpy2.mul, row, column), gmpy2.mpfr(0))

        return dots
    mpmath = module("mpmath")
    pair = [[mpmath.mpf(x) for x in rows[0].tolist()], [mpmath.mpf(x) for x in columns[:, 0]]]

    def dot() -> None:
        with mpmath.workprec(113):
            mpmath.fdot(*pair)

    return dot


def function(who: str, op: str, x: Array) -> tuple[int, Callable[[], Any]]:
    """(how many elements, the op on so many of x's elements) by a slow peer."""
    few = x[: CALLS[who]].astype(np.float64)
    if who == "NumPy longdouble":
        wide = few.astype(np.longdouble)
        return len(few), lambda: getattr(np, op)(wide)
    values, (name, *_) = few.tolist(), who.split(",")

    def run() -> None:
        library = module({"Arb": "flint"}.get(name, name))
        if name == "Arb":
            call, precision = lambda x: getattr(library.arb(x), op)(), library.ctx.workprec(106)
        else:
            call = getattr(library, op)
            precision = library.context(precision=113) if name == "gmpy2" else library.workprec(113)
        with precision:
            for value in values:
                call(value)

    return len(few), run


class Torch:
    """torch in the interpreter that `refkernels env` knows; its own seconds, without transfers."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.session = Session("torch", settings={"OMP_NUM_THREADS": str(threads)})
        self.reason = None if self.session.start() else f"torch: {self.session.reason}"

    @property
    def version(self) -> str:
        return str(self.session.info["version"]) if self.reason is None else "missing"

    def work(
        self, op: str, direction: Any, inputs: dict[str, Array], params: Any = None
    ) -> Callable[[], float]:
        """Runs an op (backward: forward and backward); inputs of floats are made float64."""
        wide = {
            name: array.astype(np.float64) if array.dtype.kind == "f" else array
            for name, array in inputs.items()
        }

        def run() -> float:
            if self.reason is not None:
                raise RuntimeError(self.reason)
            reply = self.session.run(op, direction, wide, params)
            if not reply.ok or reply.seconds is None:
                raise RuntimeError(str(reply.reason))
            return reply.seconds

        return run

    def close(self) -> None:
        self.session.close()
