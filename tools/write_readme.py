"""Writes the tables and the figures in the prose of README.md and docs/ from benchmarks/results, in
the report's own spelling.

python tools/write_readme.py

A table stands between `<!-- NAME: ... -->` and `<!-- end of NAME -->`, a figure in prose between
`<!--NAME-->` and `<!--/NAME-->`, neither at the start of a line; the rest is left as it is.
"""

import functools
import json
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from refkernels.records.files import write_whole
from refkernels.reporting.measure import scores, threads
from refkernels.reporting.measure.study import Measurement, Study
from refkernels.reporting.reading import read_records
from refkernels.reporting.sweep import rows as sweeps
from refkernels.reporting.words.numerals import figure, joined, ratio
from refkernels.reporting.words.vocabulary import verdict
from refkernels.target_names import parse

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "cpu-x86_64-linux"
WIDER = RESULTS.with_name("cpu-x86_64-avx512")
EMULATED = RESULTS.with_name("cpu-aarch64-emulated")
EMULATED_MINDSPORE = RESULTS.with_name("cpu-aarch64-emulated-mindspore")
GPU = RESULTS.with_name("nvidia-h100-80gb-hbm3")
FRAMEWORKS = ("torch", "paddle", "oneflow", "mindspore", "numpy", "libm")
OPS = ("matmul", "linear", "layernorm", "sin", "cos", "tan", "exp", "tanh", "gelu")
SWEPT = ("sin", "cos", "tan", "exp", "log", "tanh", "erf")
_ROUNDING = verdict("rounding").rank


@functools.cache
def _records(folder: Path = RESULTS) -> list[dict[str, Any]]:
    return read_records(folder / "records.jsonl")


@functools.cache
def _study(folder: Path = RESULTS) -> Study:
    return Study.of(_records(folder))


@functools.cache
def _threads() -> threads.Threads:
    return threads.threads_of(_study())


@functools.cache
def _swept_records(folder: Path = RESULTS) -> list[dict[str, Any]]:
    return read_records(folder / "sweeps.jsonl")


@functools.cache
def accuracy(ops: tuple[str, ...] = OPS) -> str:
    """The report's table: largest error / bound and the share of correctly rounded answers,
    forward, over all cases and outputs."""
    study = _study()
    board, rows = scores.blocks(study), []
    for op in ops:
        for dtype in ("float32", "float64"):
            rows.append([f"{op} {dtype}", *(_score(_of(board, op, dtype, n)) for n in _MEASURED)])
    subjects = [f"{env['framework']} {env['version']}" for env in study.environments]
    return _table(["forward, all cases", *_named(subjects, _MEASURED)], rows)


def short(head: str = "forward, all cases") -> str:
    """A few rows of the accuracy table."""
    table = accuracy(("linear", "layernorm", "exp", "gelu"))
    return table.replace("forward, all cases", head, 1).replace("all |", f"{_ALL[head]} |")


_ALL = {"forward, all cases": "all", "前向，全部用例": "全部"}
_MEASURED = FRAMEWORKS[:5]


def _of(board: list[scores.Block], op: str, dtype: str, name: str) -> scores.Score | None:
    """The report's own score."""
    for block in board:
        for row in block.rows if (block.op, block.direction) == (op, "forward") else ():
            for subject, score in row.scores.items():
                if row.dtype == dtype and subject.split()[0] == name:
                    return score
    return None


def _score(score: scores.Score | None) -> str:
    if score is None:
        return "–"
    size = ratio(score.bound)
    if score.verdict.rank < _ROUNDING:
        size = f"**{size}**"
    return f"{size} · {_right(score.correct, score.decided)}"


def _right(part: int, total: int) -> str:
    """A share in few digits, rounded down; "all" only where all are."""
    if part in (0, total):
        return "all" if part else "0 %"
    percent = 100.0 * part / total
    if percent >= 99.99 or percent < 0.1:
        return ">99.99 %" if percent > 1 else "<0.1 %"
    digits = 2 if percent >= 99.9 else 1 if percent >= 99.0 or percent < 1.0 else 0
    return f"{int(percent * 10**digits) / 10**digits:.{digits}f} %"


def sweep() -> str:
    """The largest error in ulp and the share not correctly rounded, over all float32 inputs."""
    all_rows = sweeps.rows(_swept_records())
    by_name = {(row.op, row.subject.split()[0]): row for row in all_rows if row.dtype == "float32"}
    rows = [[op, *(_swept(by_name.get((op, name))) for name in FRAMEWORKS)] for op in SWEPT]
    return _table(["float32", *_named([row.subject for row in all_rows], FRAMEWORKS)], rows)


def _swept(row: sweeps.SweepRow | None) -> str:
    if row is None or not row.swept:
        return "–"
    largest = f"**{row.largest}**" if row.verdict.rank < _ROUNDING else row.largest
    return f"{largest} · {row.wrong}"


_SECTIONS = {"layernorm": "LayerNorm ", "matmul": "matmul, ", "sweep": "sweep of "}


def speed() -> str:
    """The bars, and what was measured on each machine."""
    bars: dict[str, str] = {}
    figures: dict[tuple[str, str], str] = {}
    machines = {"AMD EPYC": RESULTS, "Intel Xeon, AVX-512": WIDER}
    for machine, folder in machines.items():
        for row in json.loads((folder / "speed.json").read_text(encoding="utf-8"))["rows"]:
            if {row["bar"], row["section"]} & {None, "binades"} or row["work"][:10] == "first call":
                continue
            unit = f" {row['unit']}" + (f" {row['base']}" if row["unit"] == "x" else "")
            sense = "≥" if row["at_least"] else "≤"
            work = f"{_SECTIONS.get(row['section'], '')}{row['work']} {row['size']}".strip()
            bars[work] = f"{sense} {row['bar']:g}{unit}"
            got = _figure(row)
            figures[work, machine] = got if row["met"] else f"**{got}**"
    rows = [
        [work, bar, *(figures.get((work, machine), "–") for machine in machines)]
        for work, bar in bars.items()
    ]
    return _table(["work", "bar", *machines], rows)


def _figure(row: dict[str, Any]) -> str:
    if row["unit"] == "x" and row["ratio_iqr"] is None:  # measured once
        return f"{row['ratio']:.2f}"
    if row["unit"] == "x":
        low, high = row["ratio_iqr"]
        return f"{row['ratio']:.2f} ({low:.2f} to {high:.2f})"
    return figure(row["median_s"])


def enclosures() -> str:
    """The number of enclosures of each primitive that were compared with exact values."""
    counts = json.loads((RESULTS / "enclosures.json").read_text(encoding="utf-8"))["counts"]
    readings = "Ball", "fused", "DoubleDouble", "Arb", "Bound"
    compared = {name: [counts[kind].get(name, 0) for kind in readings] for name in counts["Ball"]}
    rows = [
        [name, *(f"{n:,}" if n else "–" for n in of_name)] for name, of_name in compared.items()
    ]
    totals = [f"**{sum(counts[reading].values()):,}**" for reading in readings]
    return _table(["", *readings], [*rows, ["**in all**", *totals]])


def calibration() -> str:
    """How many right kernels have so much evidence against them, and how many may."""
    kept = json.loads((RESULTS / "calibration.json").read_text(encoding="utf-8"))
    rows = [
        [f"{bits}", f"{count:,}", f"{kept['kernels'] / 2**bits:,.1f}"]
        for bits, count in enumerate(kept["exceeding"])
    ]
    false = [f"{len(kept['false']):,} of {kept['kernels']:,}", "0"]
    return _table(["bits", "kernels", "at most"], [*rows, ["matched or proven falsely", *false]])


def _named(subjects: list[str], names: tuple[str, ...]) -> list[str]:
    """`torch 2.13.0` of `torch 2.13.0+cpu`, for the names in their order."""
    known = {subject.split()[0]: subject.partition("+")[0] for subject in subjects}
    return [known.get(name, name) for name in names]


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def every_machine() -> str:
    """Of every machine with kept records: the score of every op, pass, format and subject."""
    return "\n".join(map(_machine_table, (RESULTS, GPU, EMULATED, EMULATED_MINDSPORE)))


def _machine_table(folder: Path) -> str:
    study = _study(folder)
    results: dict[str, dict[str, list[Measurement]]] = defaultdict(lambda: defaultdict(list))
    for result in study.measurements:
        if not result.record.get("formula"):
            place = f"{result.op} {result.direction} {result.dtype}"
            target, version = parse(result.subject), result.record["version"].partition("+")[0]
            settings = ("=".join(setting) for setting in target.settings)
            words = (target.framework, version, target.device, *settings)
            results[place][" ".join(filter(None, words))].append(result)
    subjects = sorted({subject for place in results.values() for subject in place})
    rows = []
    for place, measured in sorted(results.items()):
        found = [scores.score(measured[s]) if s in measured else None for s in subjects]
        rows.append([place, *map(_score, found)])
    machine = study.environments[0]["cpu"]
    return f"## {folder.name}\n\n{machine}\n\n{_table(['', *subjects], rows)}\n"


def emulated(framework: str = "torch", folder: Path = EMULATED) -> str:
    """Each op, pass and format in which a framework gives other bits on the emulated machine than
    on x86-64: both scores, and the share of results that have the same bits; below the table those
    without a difference."""
    study = _study(folder)
    equal: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    targets = {env["framework"] for env in study.environments}
    of_framework = {target for target in targets if parse(target).framework == framework}
    for pair in study.agreements:
        if {pair["a"], pair["b"]} <= of_framework:
            counts = equal[f"{pair['op']} {pair['direction']} {pair['dtype']}"]
            counts[0] += pair["equal_bits"]
            counts[1] += pair["elements"]
    results: dict[str, dict[str, list[Measurement]]] = defaultdict(lambda: defaultdict(list))
    for result in study.measurements:
        if result.record["framework"] in of_framework:
            place = f"{result.op} {result.direction} {result.dtype}"
            results[place][_machine(result)].append(result)
    machines = sorted({machine for place in results.values() for machine in place}, reverse=True)
    rows = []
    for place in sorted(equal):
        if equal[place][0] < equal[place][1]:
            cells = [_score(scores.score(results[place][machine])) for machine in machines]
            rows.append([place, *cells, _right(*equal[place])])
    equal_places = [place for place in sorted(equal) if equal[place][0] == equal[place][1]]
    below = f"\n\nThe same in all bits: {joined(equal_places)}." if equal_places else ""
    return f"{_table(['core cases', *machines, 'same bits'], rows)}{below}"


def _machine(result: Measurement) -> str:
    """Where a result was measured: "torch 2.10.0, aarch64"."""
    machine = (result.record.get("settings") or {}).get("machine", "x86-64")
    version = str(result.record["version"]).partition("+")[0]
    return f"{parse(result.record['framework']).framework} {version}, {machine}"


_ON_THE_GPU = {"0": "GPU", "1": "GPU, TF32"}


def gpu() -> str:
    """Each op, pass and format of which torch's verdict on the GPU, with TF32 or without, is not
    that on the CPU."""
    results: dict[str, dict[str, list[Measurement]]] = defaultdict(lambda: defaultdict(list))
    for result in _study(GPU).measurements:
        if not result.record.get("formula"):
            tf32 = (result.record.get("settings") or {}).get("allow_tf32")
            place = f"{result.op} {result.direction} {result.dtype}"
            results[place][_ON_THE_GPU.get(tf32, "CPU")].append(result)
    targets = ("CPU", *_ON_THE_GPU.values())
    rows = []
    for place, of_targets in sorted(results.items()):
        answered = {name: [m for m in of_targets[name] if m.status == "ok"] for name in targets}
        all_scores = [scores.score(answers) if answers else None for answers in answered.values()]
        if len({score.verdict.rank < _ROUNDING for score in all_scores if score}) > 1:
            rows.append([place, *map(_score, all_scores)])
    return _table(["all cases", *targets], rows)


def gpu_kernels() -> str:
    """Liger's kernels, and algorithms of Triton's tutorials, on the GPU."""
    rows = [
        [subject.partition("@")[0].partition(":")[2], block.direction, row.dtype, _score(score)]
        for block in scores.blocks(_study(GPU / "kernels"))
        for row in block.rows
        for subject, score in row.scores.items()
    ]
    return _table(["kernel", "pass", "format", "core cases"], sorted(rows))


def gpu_orders() -> str:
    """In which order libraries add on the GPU, by shape."""
    head = ["library", "op", "format", "order", "shapes"]
    return _table(head, json.loads((GPU / "orders.json").read_text(encoding="utf-8")))


_BITS_DEPEND_ON = {
    "run_to_run": "the run",
    "position": "a row's place",
    "batch": "the batch",
    "threads": "the CPU's threads, or the run",
}


def gpu_bits() -> str:
    """The ops and passes whose bits depend on what they must not, on the CPU and on the GPU."""
    places: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for _, record in _study(GPU).invariances:
        on_gpu = str(record["device"]).startswith("cuda")
        if record.get("different") and "allow_tf32=1" not in record["framework"]:
            place = f"{record['op']} {record['direction']}".removesuffix(" forward")
            places[record["property"], "GPU" if on_gpu else "CPU"][place] = None
    rows = [
        [cause, *(joined(sorted(places[name, place])) or "–" for place in ("CPU", "GPU"))]
        for name, cause in _BITS_DEPEND_ON.items()
    ]
    return _table(["bits depend on", "CPU", "GPU"], rows)


def gpu_sweep() -> str:
    """The largest error and the share not correctly rounded over all float32 inputs, on the GPU."""
    swept: dict[str, dict[str, sweeps.SweepRow]] = {}
    for place, folder in (("CPU", RESULTS), ("GPU", GPU)):
        for row in sweeps.rows(_swept_records(folder)):
            if row.dtype == "float32" and row.subject.split()[0] == "torch":
                name = f"{row.subject.partition('+')[0]}, {place}"
                swept.setdefault(name, {})[row.op] = row
    on_gpu = list(swept.values())[-1]
    rows = [[op, *(_swept(of_target.get(op)) for of_target in swept.values())] for op in on_gpu]
    return _table(["float32", *swept], [row for row in rows if row[-1] != "–"])


def linear_differences() -> str:
    """torch's Linear against Paddle's with a bias that is not zero, one initialisation each."""
    biased = [pairs for case, pairs in _threads().linear.items() if "bias=zero" not in case]
    chief = (
        pair for pairs in biased for names, pair in pairs.items() if set(names) == threads.CHIEF
    )
    differences = (pair.difference for pair in chief)
    return joined([figure(size, 2) for size in sorted(differences, reverse=True)])


def _row(output: str) -> dict[str, Measurement]:
    """The answers to the LayerNorm thread's own row, by framework."""
    table = _threads().tables["thread:layernorm"]
    _, _, answers = next(row for row in table if row[1] == output)
    return {subject.split()[0]: answer for subject, answer in answers.items()}


_CALLED = {"paddle": "Paddle", "oneflow": "OneFlow", "mindspore": "MindSpore", "torch": "torch"}


def exact_row() -> str:
    return _sizes({f"{float(m.worst['exact']['decimal']):.10g}" for m in _row("y").values()})


def nonzero_gradients() -> str:
    """The frameworks whose gradient is not 0, with it."""
    row = _row("dx").items()
    gradients = {name: str(m.worst["got"]["decimal"]) for name, m in row if m.at_zero}
    return joined([f"{_CALLED[name]}'s {_sizes({got})}" for name, got in gradients.items()])


def _sizes(decimals: set[str]) -> str:
    """∓ their common absolute value: the row's two numbers are opposite."""
    (size,) = {decimal.removeprefix("-") for decimal in decimals}
    return f"∓{size}"


def gradient_ratio() -> str:
    bounds = (m.number("bound", "max_ratio") for m in _row("dx").values())
    return ratio(max(bound for bound in bounds if bound is not None))


def exp_of_minus_infinity() -> str:
    """The answer that Paddle gives where exp is exactly 0."""
    swept = {(row.get("op"), row.get("framework")): row for row in _swept_records()}
    return figure(float(swept["exp", "paddle"]["firsts"]["nonzero_at_zero"]["got"]["decimal"]))


def planted() -> str:
    """For each fault planted in the BERT: what align says from its first captures, and the step
    from which the loss curve alone shows it."""
    record = json.loads((RESULTS / "bert_planted.json").read_text())
    rows = []
    for row in record["rows"]:
        apart = figure(row["apart"][-1], 1) if row["apart"][-1] is not None else "diverges"
        rows.append([f"{row['optimizer']}: {row['planted']}", *_headline(row), apart])
    return _table(["planted", "`align`, steps 0 to 2", "curve from step", "apart at 199"], rows)


def planted_in_transformer() -> str:
    """As `planted`, for each fault planted in the small transformer."""
    record = json.loads((RESULTS / "alignment.json").read_text())
    rows = [[row["planted"], *_headline(row)] for row in record["rows"]]
    return _table(["planted", "`align`, steps 0 to 2", "curve from step"], rows)


def _headline(row: dict[str, Any]) -> tuple[str, str]:
    """What align says first, and the step from which the loss curve shows it."""
    first = row["says"].removeprefix("**Different definition.** First: ").split(". ")[0]
    first = first.removesuffix(" (below).").rstrip(".")
    headline = first if row["step"] is not None else row["verdict"]
    return headline, "never" if row["curve"] is None else str(row["curve"])


ANSWER_RIGHT = ("falls_back", "own_shape_unanswered", "patches_the_clock", "stops_the_clock")
RULES = ("1e-2", "1e-4", "1e-5", "2 x", "benchdnn")


def judged() -> str:
    """The number of cheats that each rule passes, and of right kernels that `judge` refused."""
    record = json.loads((RESULTS / "judging.json").read_text())
    verdicts, runs = record["verdicts"], record["runs"]["right"]
    cheats = {
        name: rules
        for name, rules in record["rules"].items()
        if name.startswith("cheats/") and not any(right in name for right in ANSWER_RIGHT)
    }
    passed = {rule: sum(rules.get(rule, False) for rules in cheats.values()) for rule in RULES}
    judge_passes = sum("right" in verdicts[name] for name in cheats)
    right = sum(bool(seen) for name, seen in verdicts.items() if name.startswith("right/"))
    return (
        f"of {len(cheats)} cheats that the tests keep (each with its reason) "
        f"`allclose` passes {passed['1e-2']} at 1e-2, {passed['1e-4']} at 1e-4 and "
        f"{passed['1e-5']} at `torch.testing.assert_close`'s defaults; FlashAttention's rule, at "
        f"most twice the framework's error, passes {passed['2 x']}; benchdnn's thresholds, on "
        f"inputs like its own, pass {passed['benchdnn']}. `judge` passes {judge_passes or 'none'}, "
        f"and of {runs} answers of {right} right kernels to a first round of its inputs, without "
        f"long rows, it has refused {record['refused']}"
    )


Makers = dict[str, Callable[[], str]]
FIGURES: dict[str, Makers] = {
    "docs/threads.md": {
        "linear differences": linear_differences,
        "exact row": exact_row,
        "nonzero gradients": nonzero_gradients,
        "gradient ratio": gradient_ratio,
    },
    "docs/sweeps.md": {"exp of -inf": exp_of_minus_infinity},
    "docs/judging.md": {"judged": judged},
}
TABLES: dict[str, Makers] = {
    "README.md": {"accuracy": short},
    "README.zh.md": {"accuracy": lambda: short("前向，全部用例")},
    "docs/accuracy.md": {"accuracy": accuracy},
    "docs/sweeps.md": {"sweep": sweep},
    "docs/table.md": {"table": every_machine},
    "docs/bert.md": {"planted": planted},
    "docs/align.md": {"planted": planted_in_transformer},
    "docs/cost.md": {"speed": speed},
    "docs/devices.md": {
        "torch": emulated,
        "mindspore": lambda: emulated("mindspore", EMULATED_MINDSPORE),
        "gpu": gpu,
        "gpu sweep": gpu_sweep,
        "gpu bits": gpu_bits,
        "gpu kernels": gpu_kernels,
        "gpu orders": gpu_orders,
    },
    "docs/trust.md": {"enclosures": enclosures, "calibration": calibration},
}
PAGES = tuple(dict.fromkeys((*TABLES, *FIGURES)))


def written(name: str, page: str) -> str:
    """The page with the tables and figures of the results. Raises ValueError where the page has no
    place for one."""
    for table, make in TABLES.get(name, {}).items():
        place = re.compile(rf"(<!-- {table}: [^\n]*-->\n).*?(<!-- end of {table} -->)", re.DOTALL)
        page = _filled(page, place, f"{make()}\n", f"{name} has no place for the table {table!r}.")
    for number, make in FIGURES.get(name, {}).items():
        place = re.compile(rf"(?<=[^\n])(<!--{number}-->)[^<]*(<!--/{number}-->)")
        page = _filled(page, place, make(), f"{name} has no place for the figure {number!r}.")
    return page


def _filled(page: str, place: re.Pattern[str], text: str, complaint: str) -> str:
    if len(place.findall(page)) != 1:
        raise ValueError(complaint)
    return place.sub(lambda match: f"{match[1]}{text}{match[2]}", page)


def main() -> None:
    for name in PAGES:
        page = ROOT / name
        write_whole(page, written(name, page.read_text(encoding="utf-8")))
        print(page)


if __name__ == "__main__":
    main()
