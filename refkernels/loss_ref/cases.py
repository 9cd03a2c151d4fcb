"""The inputs on which losses are measured, by regime."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from refkernels.op import Case
from refkernels.ops.cases import Arrays, case

Generator = np.random.Generator
Change = Callable[[Generator, Arrays], Any]
Leading = tuple[int, ...]
NONE = {"reduction": "none"}
IGNORED = -100


def logits(
    leading: Leading = (32,),
    n: int = 50,
    change: Change | None = None,
    reduction: str = "mean",
    weighted: bool = False,
) -> Callable[[Generator, str], Arrays]:
    """Rows of normal logits with labels; `change` alters them in place."""

    def build(rng: Generator, dtype: str) -> Arrays:
        arrays: Arrays = {"x": 3.0 * rng.standard_normal((*leading, n))}
        arrays["target"] = rng.integers(0, n, leading)
        if weighted:
            arrays["weight"] = rng.uniform(0.25, 2.0, n)
        if change is not None:
            change(rng, arrays)
        dloss = rng.uniform(0.5, 2.0, leading if reduction == "none" else ())
        return {"dloss": dloss, **arrays}

    return build


def cross_entropy() -> list[Case]:
    """All cases. Appended, never changed."""
    make, rows = partial(case, "cross_entropy"), partial(logits, reduction="none")
    smoothed = {"label_smoothing": 0.1}
    return [
        *_reductions("cross_entropy", logits),
        make("rows", {"rows": 100_000, "n": 3}, logits((100_000,), 3), dtypes=("float32",)),
        make("classes", {"n": 30522}, logits((4,), 30522)),
        make("offset", {"offset": 1e4}, rows(change=_offset), NONE),
        make("spread", {"spread": 1e4}, rows(change=partial(_spread, 1e4)), NONE),
        make("confident", {"gap": 20}, rows(change=_confident), NONE),
        make("masked", {"n": 50}, rows(change=_masked), NONE),
        make("ignored", {"ignore_index": IGNORED}, logits((4, 8), 7, _ignore)),
        make("ignored", {"ignore_index": 3}, logits((4, 8), 7), {"ignore_index": 3}),
        make("ignored", {"of": "all"}, logits((8,), 7, _ignore_all)),
        make("weighted", {"n": 7}, logits((4, 8), 7, _ignore, weighted=True)),
        make("smoothing", {"share": 0.1}, logits((4, 8), 7), smoothed),
        make("smoothing", {"of": "weighted"}, logits((32,), 7, weighted=True), smoothed),
        make("invalid", {"label": "n"}, rows((8,), 7, partial(_invalid, 7)), NONE),
        make("invalid", {"label": -1}, rows((8,), 7, partial(_invalid, -1)), NONE),
        make("invariance", {"rows": 37, "n": 257}, rows((37,), 257), NONE),
        *(
            make("rows", {"rows": n, "n": 3}, logits((n,), 3), dtypes=("float32",))
            for n in (10, 1000)
        ),
        *(
            make("spread", {"spread": spread}, rows(change=partial(_spread, spread)), NONE)
            for spread in (1.0, 10.0, 100.0)
        ),
        make(
            "smoothing", {"of": "weighted and ignored"}, logits((4, 8), 7, _ignore, weighted=True),
            smoothed,
        ),
        make("z_loss", {"z": 0.01}, logits((4, 8), 7, _ignore), {"z_loss": 0.01}),
        make("softcap", {"softcap": 5}, rows(n=50), {"softcap": 5.0, **NONE}),
        make(
            "combined", {"softcap": 30}, rows((16,), 50, partial(_spread, 50.0)),
            {"softcap": 30.0, "z_loss": 1e-4, **smoothed, **NONE},
        ),
    ]  # fmt: skip


def nll() -> list[Case]:
    """All cases. Appended, never changed."""
    make, log = partial(case, "nll"), partial(logits, change=_normalise)
    return [
        *_reductions("nll", log),
        make("ignored", {"ignore_index": IGNORED}, logits((4, 8), 7, _ignore)),
        make("weighted", {"n": 7}, logits((4, 8), 7, _ignore, weighted=True)),
        make("invariance", {"rows": 37, "n": 257}, log((37,), 257, reduction="none"), NONE),
        *(
            make(
                "invalid", {"label": label}, logits((8,), 7, partial(_invalid, label), "none"), NONE
            )
            for label in (7, -1)
        ),
    ]


def soft() -> list[Case]:
    """All cases. Appended, never changed."""
    make, rows = partial(case, "soft_cross_entropy"), partial(logits, change=_soften)
    return [
        *_reductions("soft_cross_entropy", rows),
        make("weighted", {"n": 7}, rows((4, 8), 7, weighted=True)),
        make("smoothing", {"share": 0.1}, rows((4, 8), 7), {"label_smoothing": 0.1}),
        make("spread", {"spread": 1e4}, rows(change=_spread_soft, reduction="none"), NONE),
        make("invariance", {"rows": 37, "n": 257}, rows((37,), 257, reduction="none"), NONE),
    ]


def masked() -> list[Case]:
    """All cases. Appended, never changed."""
    make = partial(case, "masked_lm_loss")
    return [
        *_reductions("masked_lm_loss", partial(logits, change=partial(_weigh, 1.0))),
        make("predictions", {"of": 20}, logits((4, 20), 50, _predicted)),
        make("predictions", {"of": 1}, logits((1, 1), 50, _predicted)),
        make("predictions", {"of": 0}, logits((2, 3), 50, partial(_weigh, 0.0))),
        make("weights", {"size": 1e-4}, logits((4, 20), 50, partial(_weigh, 1e-4))),
        make(
            "invariance", {"rows": 37, "n": 50}, logits((37,), 50, partial(_weigh, 1.0), "none"),
            NONE,
        ),
    ]  # fmt: skip


def pairs(
    op: str, spread: float = 3.0, target: Callable[[Generator, Any], Any] | None = None,
    *more: Case,
) -> list[Case]:  # fmt: skip
    """The cases of a loss of pairs of numbers. Appended, never changed."""
    make, build = partial(case, op), partial(_pair, spread, target or _normal)
    return [
        *_reductions(op, build),
        make("rows", {"rows": 1_000_000}, build((1_000_000,)), dtypes=("float32",)),
        make("axes", {"shape": "4x8"}, build((4, 8))),
        *more,
        make("specials", {}, _specials, NONE),
        make("invariance", {"n": 259}, build((259,), reduction="none"), NONE),
        *(make("rows", {"rows": n}, build((n,)), dtypes=("float32",)) for n in (10, 1000)),
    ]


def differences(op: str, kink: str = "") -> list[Case]:
    """Those of losses of x - target: large numbers that are near, equal ones, other kinks."""
    near = case(op, "near", {"offset": 1e4}, _pair(1.0, _near, (64,), 1e4, "none"), NONE)
    equal = case(op, "equal", {}, _pair(1.0, _equal, (16,), reduction="none"), NONE)
    return pairs(op, 3.0, _normal, near, equal, *_kinks(op, kink))


def smooth_l1() -> list[Case]:
    """All cases. Appended, never changed."""
    return pairs("smooth_l1", 3.0, _normal, *_kinks("smooth_l1", "beta"))


def _kinks(op: str, name: str) -> list[Case]:
    return [
        case(op, name, {name: value}, _pair(3.0, _normal, (64,)), {name: value})
        for value in ((0.5, 3.0) if name else ())
    ]


def _reductions(op: str, build: Any) -> list[Case]:
    return [
        case(op, "reduction", {"of": of}, build(reduction=of), {"reduction": of})
        for of in ("none", "sum", "mean")
    ]


def _pair(
    spread: float, target: Callable[[Generator, Any], Any], shape: Leading = (64,),
    offset: float = 0.0, reduction: str = "mean",
) -> Callable[[Generator, str], Arrays]:  # fmt: skip
    def build(rng: Generator, dtype: str) -> Arrays:
        x = offset + spread * rng.standard_normal(shape)
        dloss = rng.uniform(0.5, 2.0, shape if reduction == "none" else ())
        return {"dloss": dloss, "x": x, "target": target(rng, x)}

    return build


def _normal(rng: Generator, x: Any) -> Any:
    return rng.standard_normal(x.shape)


def _near(rng: Generator, x: Any) -> Any:
    return x + rng.standard_normal(x.shape)


def _equal(rng: Generator, x: Any) -> Any:
    return x.copy()


def labels(rng: Generator, x: Any) -> Any:
    """0 and 1."""
    return np.round(rng.random(x.shape))


def probabilities(rng: Generator, x: Any) -> Any:
    """Numbers between 0 and 1, an eighth of them 0."""
    p = rng.random(x.shape)
    return np.where(p < 0.125, 0.0, p)


def _specials(rng: Generator, dtype: str) -> Arrays:
    x = np.array([np.nan, np.inf, -np.inf, 1.0, 0.0, -0.0, 0.0, -0.0])
    target = np.array([0.0, 0.0, 0.0, np.nan, 0.0, 0.0, 1.0, 1.0])
    return {"dloss": np.ones(8), "x": x, "target": target}


def binary() -> list[Case]:
    """All cases. Appended, never changed."""
    op = "bce_with_logits"

    def wide(rng: Generator, dtype: str) -> Arrays:
        x = np.repeat(np.linspace(-110.0, 110.0, 111), 2)
        return {"dloss": np.ones(222), "x": x, "target": np.tile([0.0, 1.0], 111)}

    def weighted(rng: Generator, dtype: str) -> Arrays:
        arrays = _pair(3.0, labels, (16, 5))(rng, dtype)
        extra = {"weight": rng.uniform(0.5, 2.0, (16, 5)), "pos_weight": rng.uniform(0.5, 4.0, 5)}
        return {**arrays, **extra}

    def zeros(rng: Generator, dtype: str) -> Arrays:
        arrays = _pair(3.0, labels, reduction="none")(rng, dtype)
        return {**arrays, "x": arrays["x"] * (np.arange(64) % 2)}

    return [
        *pairs(
            op, 3.0, labels,
            case(op, "wide", {"largest": 110}, wide, NONE),
            case(op, "weighted", {"n": 5}, weighted),
        ),
        case(op, "zeros", {"share": "1/2"}, zeros, NONE),
    ]  # fmt: skip


def divergence() -> list[Case]:
    """All cases. Appended, never changed."""
    op = "kl_div"
    build = partial(_pair, 3.0, probabilities)
    return pairs(
        op, 3.0, probabilities,
        case(op, "reduction", {"of": "batchmean"}, build((4, 8)), {"reduction": "batchmean"}),
        case(op, "log_target", {}, _pair(3.0, _normal), {"log_target": True}),
    )  # fmt: skip


def ctc() -> list[Case]:
    """All cases. Appended, never changed."""
    make = partial(case, "ctc_loss")
    lengths = {"x_lengths": np.array([4, 9, 7, 9]), "target_lengths": np.array([1, 4, 0, 3])}
    return [
        *_reductions("ctc_loss", _sequences),
        make("labels", {"steps": 60, "labels": 20}, _sequences(60, 20, 30)),
        make("repeated", {"classes": 3}, _sequences(12, 5, 3, reduction="none"), NONE),
        make("lengths", {"of": "both"}, _sequences(given=lengths, reduction="none"), NONE),
        make("blank", {"blank": 5}, _sequences(7, blank=5), {"blank": 5}),
        make("confident", {"size": 30}, _sequences(7, size=30.0, reduction="none"), NONE),
        make(
            "impossible", {"steps": 4}, _sequences(4, reduction="none"),
            {"zero_infinity": True, **NONE},
        ),
        make("invariance", {"rows": 37}, _sequences(rows=37, reduction="none"), NONE),
    ]  # fmt: skip


def _sequences(
    steps: int = 9, labels: int = 4, classes: int = 6, rows: int = 4, *, size: float = 3.0,
    blank: int = 0, given: Arrays | None = None, reduction: str = "mean",
) -> Callable[[Generator, str], Arrays]:  # fmt: skip
    """Rows of so many steps and labels."""

    def build(rng: Generator, dtype: str) -> Arrays:
        target = rng.integers(0, classes - 1, (rows, labels))
        x = size * rng.standard_normal((rows, steps, classes))
        dloss = rng.uniform(0.5, 2.0, rows if reduction == "none" else ())
        return {"dloss": dloss, "x": x, "target": target + (target >= blank), **(given or {})}

    return build


def _offset(rng: Generator, arrays: Arrays) -> None:
    arrays["x"] = 1e4 + arrays["x"] / 3.0


def _spread(spread: float, rng: Generator, arrays: Arrays) -> None:
    arrays["x"] = rng.uniform(-spread, spread, arrays["x"].shape)


def _confident(rng: Generator, arrays: Arrays) -> None:
    """The label's logit is far above the others in every second row: the loss nearly vanishes."""
    rows = np.arange(0, len(arrays["x"]), 2)
    arrays["x"][rows, arrays["target"][rows]] += 20.0


def _masked(rng: Generator, arrays: Arrays) -> None:
    """30 of 50 logits are -inf, never the label's."""
    x, target = arrays["x"], arrays["target"]
    order = rng.random(x.shape)
    order[np.arange(len(x)), target] = 1.0
    x[np.argsort(np.argsort(order, axis=1), axis=1) < 30] = -np.inf


def _ignore(rng: Generator, arrays: Arrays) -> None:
    """Ignores a third of the labels, more of them in later sequences."""
    share = np.linspace(0.0, 0.7, len(arrays["target"]))[:, None]
    arrays["target"][rng.random(arrays["target"].shape) < share] = IGNORED


def _ignore_all(rng: Generator, arrays: Arrays) -> None:
    arrays["target"][:] = IGNORED


def _invalid(label: int, rng: Generator, arrays: Arrays) -> None:
    arrays["target"][2] = label


def _normalise(rng: Generator, arrays: Arrays) -> None:
    x = arrays["x"]
    arrays["x"] = x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def _soften(rng: Generator, arrays: Arrays) -> None:
    """Turns labels into probabilities."""
    e = np.exp(rng.standard_normal(arrays["x"].shape))
    arrays["target"] = e / e.sum(axis=-1, keepdims=True)


def _spread_soft(rng: Generator, arrays: Arrays) -> None:
    _spread(1e4, rng, arrays)
    _soften(rng, arrays)


def _weigh(size: float, rng: Generator, arrays: Arrays) -> None:
    arrays["weights"] = size * rng.uniform(0.5, 1.0, arrays["target"].shape)


def _predicted(rng: Generator, arrays: Arrays) -> None:
    """In each sequence only the first few predictions have weight."""
    batch, longest = arrays["target"].shape
    number = rng.integers(1, longest + 1, (batch, 1))
    arrays["weights"] = (np.arange(longest) < number).astype(np.float64)
