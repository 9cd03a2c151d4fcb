"""Synthetic records, realistic and deterministic: what views are developed and tested with."""

from __future__ import annotations

import hashlib
import json
import math
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

VERSIONS = {
    "mindspore": "2.10.0",
    "numpy": "2.4.6",
    "oneflow": "0.9.0",
    "paddle": "3.3.1",
    "torch": "2.13.0",
}
DTYPES = {
    "torch": ("float16", "bfloat16", "float32", "float64"),
    "mindspore": ("float16", "float32", "float64"),
    "numpy": ("float32", "float64"),
    "paddle": ("float32", "float64"),
    "oneflow": ("float32", "float64"),
}
UNIT = {"float16": 2**-11, "bfloat16": 2**-8, "float32": 2**-24, "float64": 2**-53}
OUTPUTS = {
    ("matmul", "forward"): ("c",),
    ("matmul", "backward"): ("da", "db"),
    ("linear", "forward"): ("y",),
    ("linear", "backward"): ("dx", "dweight", "dbias"),
    ("layernorm", "forward"): ("y",),
    ("layernorm", "backward"): ("dx", "dweight", "dbias"),
    **{(op, "forward"): ("y",) for op in ("sin", "cos", "tan")},
    **{(op, "backward"): ("dx",) for op in ("sin", "cos", "tan")},
}


def cases(op: str) -> list[tuple[str, dict]]:
    """(regime, parameters) of the cases of `op`."""
    if op == "matmul":
        sweep = [("k_sweep", {"K": k}) for k in (1, 2, 3, 8, 64, 384, 385, 768, 4096, 65536)]
        return sweep + [("ill_conditioned", {"condition": 10.0**e}) for e in range(2, 15, 2)]
    if op == "linear":
        return [("seed", {"init": init, "bias": bias}) for init in "ABC" for bias in (0, 1)]
    if op == "layernorm":
        return [
            ("mean_over_std", {"n": n, "ratio": ratio, "eps": 1e-5})
            for n in (2, 8, 256, 768)
            for ratio in (0.0, 1.0, 1e2, 1e4, 1e6)
        ]
    ranges = [("range", {"low": 10.0**e, "high": 10.0 ** (e + 2)}) for e in range(-8, 38, 4)]
    return [*ranges, *[("near_multiples", {"size": n}) for n in (1, 17, 4096, 20000)]]


def _case(op: str, regime: str, parameters: dict) -> dict:
    inner = ",".join(f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}"
                     for k, v in parameters.items())  # fmt: skip
    return {
        "name": f"{op}/{regime}[{inner}]", "regime": regime, "parameters": parameters,
        "seed": 7, "shapes": {"x": [32, 768]}, "params": {"eps": 1e-5} if op == "layernorm" else {},
    }  # fmt: skip


def _error(op, framework, dtype, regime, parameters, rng) -> tuple[float, float, float, float]:
    """(max ulp, error / bound, error / plain, condition) as shared figures suggest."""
    noise = math.exp(rng.normal(0, 0.25))
    if op in ("matmul", "linear"):
        k = parameters.get("K", 768)
        condition = parameters.get("condition", 40.0 * k)
        ulp = 0.5 if k == 1 else noise * (0.4 * condition + 0.7 * math.sqrt(k))
        low = framework == "oneflow"
        return (ulp * (0.6 if low else 1), 0.06 * noise / math.sqrt(k), 0.5 if low else 0.9,
                condition)  # fmt: skip
    if op == "layernorm":
        ratio, n = parameters["ratio"], parameters["n"]
        condition = math.sqrt(1 + ratio**2)
        ulp = noise * (4 + {"torch": 22, "paddle": 41, "numpy": 9}.get(framework, 26) * ratio)
        bound = 0.02 * noise + 0.1 / n
        plain = 0.4 * noise
        if dtype == "float64" and framework == "mindspore":
            ulp, bound, plain = 3e8 * noise, 4.6e5 * noise, 2.1e8 * noise
        elif dtype == "float64" and framework == "paddle":
            ulp, bound, plain = 2.7e7 * noise, 3.3e4 * noise, 9e6 * noise
        elif framework == "torch" and ratio == 1e2 and n == 2:
            plain = 7.3
        return ulp, bound, plain, condition
    ulp = {"torch": 0.6, "paddle": 1.78, "mindspore": 0.5, "oneflow": 0.5, "numpy": 1.31}[framework]
    ulp = min(ulp, 0.5 + (ulp - 0.5) * noise)
    return ulp, ulp / 4, ulp, parameters.get("high", 1e4)


def _histogram(top: float, elements: int, rng) -> list[list[float]]:
    edges = [0.0, *[2.0**k for k in range(-6, 80) if 2.0**k <= max(top, 0.02)]]
    weights = np.exp(-((np.arange(len(edges)) - 0.45 * len(edges)) ** 2) / (0.12 * len(edges) ** 2))
    counts = rng.multinomial(elements - 1, weights / weights.sum())
    counts[-1] += 1
    return [[edge, int(number)] for edge, number in zip(edges, counts, strict=True) if number]


def measurement(op, direction, output, framework, dtype, regime, parameters) -> dict:
    """One measurement record, seeded by its own name."""
    name = f"{op}{direction}{output}{framework}{dtype}{regime}{parameters}"
    rng = np.random.default_rng(int(hashlib.sha256(name.encode()).hexdigest()[:8], 16))
    ulp, bound, plain, condition = _error(op, framework, dtype, regime, parameters, rng)
    elements = 4096
    exact = framework in ("mindspore", "oneflow") and op in ("sin", "cos")
    wrong = 0 if exact else max(1, int(elements * min(0.95, 0.02 + 0.1 * math.log1p(ulp))))
    flags = ["unusual"] if plain > 4 else []
    verdict = "correctly_rounded" if exact else "exceeds_bound" if bound > 1 else "rounding"
    special = 0
    if framework == "paddle" and op == "tan" and parameters.get("high") == 1e38:
        verdict, special = "special_value_mismatch", 12
    violated = []
    if framework == "numpy" and op == "cos" and dtype == "float16":
        verdict, violated = "invariant_violated", ["|cos x| <= 1"]
    if output == "dx" and op == "layernorm" and framework in ("paddle", "mindspore", "oneflow"):
        flags.append("nonzero_at_zero")
    got = float(np.float32(0.8454271584 * (1 + ulp * UNIT[dtype])))
    return {
        "schema": 1, "kind": "measurement", "status": "ok", "reason": None, "op": op,
        "direction": direction, "output": output, "framework": framework,
        "version": VERSIONS.get(framework, "1.0"), "device": "cpu", "dtype": dtype,
        "case": _case(op, regime, parameters), "settings": {}, "environment": framework[:4] + "01",
        "counts": {
            "elements": elements, "compared": elements - special, "not_correctly_rounded": wrong,
            "faithful": elements - wrong, "undecided": 0, "special_value_mismatches": special,
            "signed_zero_mismatches": 0, "nonzero_at_zero": int("nonzero_at_zero" in flags),
            "exact_zeros": 0, "sign_changes": 0, "flushed_subnormals": 0, "overflows": 0,
            "expected_specials": 0, "beyond_bound": int(bound > 1) * 77,
        },
        "ulp": {
            "max": ulp, "max_uncertainty": 1e-9, "mean": ulp / 19, "p50": ulp / 30, "p99": ulp / 3,
            "p999": ulp / 1.3, "max_distance": math.floor(ulp),
            "histogram": _histogram(ulp, elements, rng),
        },
        "error": {"max_abs": ulp * UNIT[dtype], "max_abs_at_zero": None},
        "bound": {"max_ratio": bound}, "plain": {"ratio": plain},
        "condition": {"max": condition, "median": condition / 8, "at_worst": condition},
        "worst": {
            "index": [0, 5],
            "inputs": {"x": {"index": [0, 5], "decimal": "-1.83965693", "hex": "0xbfeb79e1"}},
            "got": {"decimal": repr(got), "hex": got.hex()},
            "exact": {"decimal": "0.8454271584", "hex": (0.8454271584).hex(), "radius": "1e-20"},
            "ulp_error": ulp, "condition": condition, "error_over_bound": bound,
        },
        "invariants_violated": violated, "verdict": verdict, "flags": flags,
        "digest": hashlib.sha256(name.encode()).hexdigest(),
        "oracle": {"tiers": {"float64": elements - 3, "exact": 3}},
        "seconds": {"framework": 0.002, "oracle": 0.004},
    }  # fmt: skip


def sine(dtype="float32", high=9.0) -> dict:
    """A measurement of torch's sin."""
    return measurement("sin", "forward", "y", "torch", dtype, "range", {"high": high})


def failure(op, direction, output, framework, dtype, status, reason) -> dict:
    """One measurement record whose status is not ok."""
    regime, parameters = cases(op)[0]
    return {
        "schema": 1, "kind": "measurement", "status": status, "reason": reason, "op": op,
        "direction": direction, "output": output, "framework": framework,
        "version": VERSIONS.get(framework, ""), "device": "cpu", "dtype": dtype,
        "case": _case(op, regime, parameters), "settings": {}, "environment": framework[:4] + "01",
    }  # fmt: skip


def agreement(op, direction, output, dtype, case, a, b, share, difference, distance) -> dict:
    """One agreement record."""
    return {
        "schema": 1, "kind": "agreement", "op": op, "direction": direction, "output": output,
        "dtype": dtype, "device": "cpu", "case": case, "a": a, "b": b, "elements": 24576,
        "equal_bits": round(24576 * share), "max_abs_difference": difference,
        "max_ulp_distance": distance,
    }  # fmt: skip


def invariance(op, framework, dtype, prop, holds, **more) -> dict:
    """One invariance record."""
    return {
        "schema": 1, "kind": "invariance", "status": "ok", "reason": None, "op": op,
        "direction": "forward", "framework": framework, "version": VERSIONS[framework],
        "device": "cpu", "dtype": dtype, "property": prop, "holds": holds, "elements": 1003,
        "different": 0 if holds else 31, "case": f"{op}/invariance[n=1003,seed=3]",
        "detail": "" if holds else "31 of 1003 differ between batch and single", **more,
    }  # fmt: skip


def environment(framework: str) -> dict:
    """One environment record."""
    return {
        "schema": 1, "kind": "environment", "id": framework[:4] + "01", "framework": framework,
        "version": VERSIONS[framework], "python": "3.10.14", "numpy": "1.23.5",
        "platform": "Linux-6.1-x86_64", "cpu": "x86-64, AVX-512", "devices": ["cpu"], "threads": 2,
        "flags": {"MKL_CBWR": None}, "blas": "OpenBLAS 0.3.29", "settings": {},
        "host": {"refkernels": "0.1.0", "python": "3.11.9", "numpy": "2.4.6"},
    }  # fmt: skip


def records(frameworks=tuple(VERSIONS)) -> list[dict]:
    """A whole run."""
    run: list[dict] = [environment(name) for name in frameworks]
    for (op, direction), outputs in OUTPUTS.items():
        for framework in frameworks:
            for dtype in UNIT:
                for output in outputs:
                    if dtype not in DTYPES[framework]:
                        reason = f"{framework} has no CPU kernel of {op} for {dtype}"
                        run.append(failure(op, direction, output, framework, dtype,
                                             "unsupported", reason))  # fmt: skip
                        continue
                    if (framework, op, direction, dtype) == (
                        "oneflow",
                        "tan",
                        "backward",
                        "float64",
                    ):
                        run.append(failure(op, direction, output, framework, dtype, "killed",
                            "the interpreter ended with signal 9 (SIGKILL)"))  # fmt: skip
                        continue
                    run += [
                        measurement(op, direction, output, framework, dtype, regime, parameters)
                        for regime, parameters in cases(op)
                    ]
    return run + comparisons(frameworks)


def comparisons(frameworks) -> list[dict]:
    """Agreement and invariance records."""
    records = []
    thread = {"A": (1.2207e-4, 1), "B": (0.0, 0), "C": (1.9073e-6, 1)}
    same = {"paddle", "mindspore", "numpy"}
    for i, a in enumerate(frameworks):
        for b in frameworks[i + 1 :]:
            for regime, parameters in cases("linear"):
                case = _case("linear", regime, parameters)["name"]
                gap, distance = thread[parameters["init"]] if parameters["bias"] else (0.0, 0)
                if {a, b} <= same:
                    gap, distance = 0.0, 0
                elif "oneflow" in (a, b):
                    gap, distance = 5e-4, 9000
                records.append(agreement("linear", "forward", "y", "float32", case, a, b,
                                       1.0 if gap == 0 else 0.62, gap, distance))  # fmt: skip
            for op in ("matmul", "layernorm", "sin", "cos"):
                for dtype in ("float32", "float64"):
                    alike = {a, b} <= (same if op == "matmul" else {"mindspore", "oneflow"})
                    records.append(agreement(op, "forward", "y", dtype, f"{op}/x", a, b,
                        1.0 if alike and op != "layernorm" else 0.8, 0.0 if alike else 3e-7,
                        0 if alike else 2))  # fmt: skip
    for framework in frameworks:
        for op in ("matmul", "linear", "layernorm", "sin", "cos", "tan"):
            for prop in ("run_to_run", "position", "batch", "threads"):
                bad = (framework, op, prop) in {
                    ("paddle", "cos", "position"),
                    ("paddle", "cos", "batch"),
                    ("torch", "matmul", "threads"),
                    ("paddle", "matmul", "threads"),
                }
                records += [invariance(op, framework, dtype, prop, not bad)
                          for dtype in ("float32", "float64")]  # fmt: skip
    return records


def strict(value):
    """`value` with non-finite numbers as the strings that records use."""
    if isinstance(value, dict):
        return {key: strict(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [strict(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def undrawn(draw, jobs):
    """In the place of `starmap`: a report without plots, whose drawing takes most of its time."""
    return [None for _ in jobs]


def first_drawn(draw, jobs):
    """In the place of `starmap`: a report with one plot of each kind."""
    kinds = set()
    for kind, *arguments in jobs:
        yield None if kind in kinds else draw(kind, *arguments)
        kinds.add(kind)


def write(folder: Path, records: list[dict]) -> Path:
    """Write `some` to folder/records.jsonl; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(strict(record), ensure_ascii=False) + "\n" for record in records)
    (folder / "records.jsonl").write_text(lines, encoding="utf-8")
    return folder


class Page(HTMLParser):
    """What a page holds: ids, links, what they or others refer to, its text without scripts. It
    fails on a tag that is closed out of turn."""

    VOID = frozenset({"meta", "br", "img", "link", "input", "hr"})
    OPTIONAL = frozenset({"dt", "dd", "td", "th", "tr", "li"})

    def __init__(self, page):
        super().__init__()
        self.open, self.sources, self.links, self.ids = [], [], [], []
        self.text, self.hidden, self.titles = [], [], 0
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.open += [tag] if tag not in self.VOID else []
        self.ids += [named["id"]] if "id" in named else []
        self.links += [named["href"]] if tag == "a" else []
        self.hidden += [named.get("id")] if "hidden" in named else []
        self.titles += "title" in named
        self.sources += [named[k] for k in ("src", "href", "xlink:href") if k in named]

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        while self.open[-1] in self.OPTIONAL and tag != self.open[-1]:
            self.open.pop()  # HTML lets these be closed by what follows
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] not in (["script"], ["style"]):
            self.text.append(data)
