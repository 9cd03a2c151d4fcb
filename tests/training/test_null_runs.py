"""Null runs of a formula: rounding only, unbiased, the same for a seed, and made once."""

from pathlib import Path

import numpy as np
import pytest

from refkernels.alignment import Run
from refkernels.alignment.run import CaptureError, runs_in
from refkernels.contexts import RoundedArithmetic, Shuffled
from refkernels.training import null_runs
from refkernels.training.steps import Training

ROWS, WIDTH = 11, 7
OPTIMIZERS = ("sgd", "momentum", "adam", "adamw", "lamb", "adagrad", "lion", "rmsprop")
PARAMS = {name: {"momentum": 0.9} for name in ("sgd", "momentum", "rmsprop")}


def loss(xp, w, batch):
    """Mean square error of a small network."""
    hidden = xp.tanh(xp.matmul(xp.array(batch["x"]), xp.transpose(w["a"], (1, 0))) + w["b"])
    off = xp.matmul(hidden, w["c"]) - xp.array(batch["y"])
    return xp.reshape(xp.mean(xp.reshape(xp.square(off), (ROWS,))), ())


def weights():
    rng = np.random.default_rng(1)
    return {name: rng.standard_normal(shape).astype(np.float32) / 2
            for name, shape in (("a", (5, WIDTH)), ("b", (5,)), ("c", (5, 1)))}  # fmt: skip


def batches(number: int = 3):
    rng = np.random.default_rng(2)
    return [{"x": rng.standard_normal((ROWS, WIDTH)).astype(np.float32),
             "y": rng.standard_normal((ROWS, 1)).astype(np.float32)}
            for _ in range(number)]  # fmt: skip


def losses(folder: Path) -> np.ndarray:
    return np.array([line.loss for line in Run.read(folder).first.lines])


def test_null_runs_differ_in_rounding_only(tmp_path: Path) -> None:
    made = null_runs(tmp_path, loss, weights(), batches(), "adamw", lr=1e-2, steps=12, runs=6,
                     max_norm=0.5, undecayed=["b"], weight_decay=0.01)  # fmt: skip
    assert runs_in(tmp_path) == tuple(made)
    curves = np.array([losses(folder) for folder in made])
    assert curves.shape == (6, 12)
    assert len({curve.tobytes() for curve in curves}) == 6
    exact = Training(RoundedArithmetic("float64"), loss, weights(), "adamw", {"weight_decay": 0.01},
                     frozenset("b"), 0.5)  # fmt: skip
    truth = np.array([exact.step(batches()[step % 3], 1e-2) for step in range(12)])
    assert truth[-1] < truth[2]  # it learns
    # 2^-24 a rounding; some 10^3 roundings on the way to a loss, none of them amplified by much.
    assert np.max(np.abs(curves / truth - 1)) < 1e3 * 2.0**-24
    assert np.max(np.abs(curves / truth - 1)) > 2.0**-26
    assert Run.read(made[0]).first.complete


def made(folder: Path, **how) -> list[Path]:
    return null_runs(folder, **{
        "loss": loss, "weights": weights(), "batches": batches(), "optimizer": "sgd", "lr": 0.1,
        "steps": 5, "runs": 2, "momentum": 0.9, **how,
    })  # fmt: skip


def test_a_seed_gives_the_same_bits_and_a_stopped_series_goes_on(tmp_path: Path) -> None:
    first, again, reseeded = (made(tmp_path / f"{k}", seed=k // 2) for k in range(3))
    bits = [losses(run).tobytes() for run in first]
    assert [losses(run).tobytes() for run in again] == bits
    assert losses(reseeded[0]).tobytes() != bits[0]
    paths = [run / "rank_0" / "run.json" for run in first]
    stamp = paths[0].stat().st_mtime_ns
    paths[1].unlink()  # as a series leaves it that was stopped before its second run ended
    paths[1].with_name("steps.jsonl").write_text("{")
    assert [losses(run).tobytes() for run in made(tmp_path / "0")] == bits
    assert made(tmp_path / "0", steps=2) == first
    assert [losses(run).tobytes() for run in first] == bits
    assert paths[0].stat().st_mtime_ns == stamp
    longer = [losses(run) for run in made(tmp_path / "0", steps=8)]
    assert [(len(run), run[:5].tobytes()) for run in longer] == [(8, its) for its in bits]


OTHERS = {
    "lr": lambda step: 0.1 + (step > 3), "seed": 1, "momentum": 0.8, "max_norm": 1.0,
    "batches": batches(2), "weights": {**weights(), "b": np.ones(5)}, "optimizer": "momentum",
    "loss": lambda xp, w, batch: loss(xp, w, {**batch, "y": batch["x"][:, :1]}),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_a_run_of_another_training_is_refused(name: str, tmp_path: Path) -> None:
    (own,) = made(tmp_path, runs=1)
    before = losses(own)
    with pytest.raises(ValueError, match=r"null_00 .* choose another folder"):
        made(tmp_path, runs=1, **{name: OTHERS[name]})
    assert losses(own).tobytes() == before.tobytes()
    assert made(tmp_path, runs=1, lr=lambda step: 0.1) == [own]
    (own / "rank_0" / "run.json").write_text("{")  # damaged
    with pytest.raises(ValueError, match=r"null_00 .* choose another folder"):
        made(tmp_path, runs=1)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer_trains(optimizer: str) -> None:
    start, params = weights(), PARAMS.get(optimizer, {})
    runs = [Training(xp, loss, dict(start), optimizer, params)
            for xp in (Shuffled(3), RoundedArithmetic("float64"))]  # fmt: skip
    curves = [[training.step(batches()[0], 1e-2) for _ in range(4)] for training in runs]
    assert curves[1][-1] < curves[1][0]
    assert np.max(np.abs(np.divide(*curves) - 1)) < 1e3 * 2.0**-24


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="There is no op 'newton'"):
        null_runs(tmp_path, loss, weights(), batches(), "newton", lr=1.0, steps=1, runs=1)
    with pytest.raises(ValueError, match="no weight 'd'"):
        null_runs(tmp_path, loss, weights(), batches(), lr=1.0, steps=1, runs=1, undecayed=["d"])
    for name, wrong in (("loss", 3), ("weights", 3), ("lr", "fast"), ("seed", "a")):
        arguments = {"loss": loss, "weights": weights(), "lr": 1.0, name: wrong}
        with pytest.raises(TypeError, match=name):
            null_runs(tmp_path, batches=batches(), steps=1, runs=1, **arguments)
    with pytest.raises(ValueError, match="batches is empty"):
        null_runs(tmp_path, loss, weights(), [], lr=1.0, steps=1, runs=1)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CaptureError, match="holds no captured run"):
        runs_in(tmp_path / "empty")
    with pytest.raises(CaptureError, match="not a folder that can be read"):
        runs_in(tmp_path / "nowhere")


def test_roundings_are_unbiased_and_of_the_stated_size() -> None:
    """A sum of 1 and half an ulp or less: its error is that of one random rounding."""
    rng = np.random.default_rng(4)
    n = 200_000
    small = rng.uniform(0.0, 2.0**-23, n).astype(np.float32)
    xp = Shuffled(5)
    got = xp.plus(np.ones(n, np.float32), small).astype(np.float64)
    error = (got - 1.0 - small) * 2.0**23
    assert np.all(np.abs(error) < 1.0)
    # Five standard deviations of the means of n independent errors.
    assert abs(np.mean(error)) < 5 * np.sqrt(1 / 6 / n)
    assert np.mean(error**2) == pytest.approx(1 / 6, abs=5 * np.sqrt(1 / 30 / n))


def test_sums_are_taken_in_other_orders() -> None:
    rng = np.random.default_rng(6)
    a, b = (rng.standard_normal((9, 300)).astype(np.float32) for _ in "ab")
    exact = a.astype(np.float64) @ b.T.astype(np.float64)
    errors = []
    for seed in range(8):
        xp = Shuffled(seed)
        product = xp.matmul(xp.array(a), xp.array(np.ascontiguousarray(b.T))).data
        errors.append(product - exact)
        total = xp.sum(xp.array(a)).data[..., 0]
        assert np.all(np.abs(total - a.sum(-1, dtype=np.float64)) <= 300 * 2.0**-24 * 9 * 30)
    bound = 300 * 2.0**-24 * (np.abs(a) @ np.abs(b.T))
    assert np.all(np.abs(errors) <= bound)
    assert len({error.tobytes() for error in errors}) == 8


def test_tiny_results_and_infinities_are_themselves() -> None:
    xp = Shuffled(7)
    tiny = np.array([2.0**-140, 3e38, np.inf, np.nan, -0.0], np.float32)
    assert np.array_equal(xp.times(tiny, np.ones(5, np.float32)), tiny, equal_nan=True)
    assert np.isinf(xp.plus(tiny[1:2], tiny[1:2])).all()
