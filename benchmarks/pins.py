"""Pins what `explain` answers: one line for each kernel, made again and compared by one command.

    python benchmarks/pins.py --out pins.jsonl [--seeds 1] [--corpus PATH ...]
    python benchmarks/pins.py --compare before.jsonl after.jsonl

The kernels are the benchmark's planted faults and right ones (`diagnosis`); folders of public
threads (arrays.npz and question.json each); and archives of kernels (`meta` as JSON, arrays as
NAME/in/x and NAME/out/y). A run goes on where it was stopped. The comparison lists every kernel
whose verdict, cause or confidence changed, what was lost first.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import diagnosis

import refkernels

Question = tuple[str, dict[str, Any], Any, dict[str, Any], Any]
PINNED = ("verdict", "cause", "confidence")
SURE = ("proven", "matched")


def planted(seeds: int) -> Iterator[tuple[str, Question]]:
    """The benchmark's kernels, right ones among them."""
    for name, kernel in diagnosis.kernels(seeds, 300):
        question = kernel.op, kernel.inputs, kernel.outputs, kernel.params, kernel.direction
        yield f"planted/{name}", question


def corpus(path: Path) -> Iterator[tuple[str, Question]]:
    """A folder of threads, or an archive."""
    if path.is_dir():
        for text in sorted(path.glob("*/question.json")):
            yield from _thread(text)
        return
    arrays = np.load(path, allow_pickle=False)
    for name, entry in json.loads(arrays["meta"].tobytes()).items():
        inputs, outputs = (
            _named(arrays, f"{name}/{side}/", entry["dtypes"]) for side in ("in", "out")
        )
        question = entry["op"], inputs, outputs, entry["params"], entry["direction"]
        yield f"{path.stem}/{name}", question


def _thread(text: Path) -> Iterator[tuple[str, Question]]:
    question, arrays = json.loads(text.read_text()), np.load(text.parent / "arrays.npz")
    inputs = _named(arrays, "in/", {})
    for kernel in question["kernels"]:
        outputs = _named(arrays, f"out/{kernel}/", {})
        asked = question["op"], inputs, outputs, question["params"], question["direction"]
        yield f"{text.parent.name}/{kernel}", asked


def _named(arrays: Any, prefix: str, dtypes: dict[str, str]) -> dict[str, Any]:
    """The arrays under a prefix; the formats that NumPy lacks are kept as their bits, as `x:bf16`
    or with an entry in `dtypes`."""
    found, side = {}, prefix.split("/")[-2]
    for key in (key for key in arrays.files if key.startswith(prefix)):
        name, _, dtype = key[len(prefix) :].partition(":")
        dtype = {"bf16": "bfloat16"}.get(dtype, dtype) or dtypes.get(f"{side}.{name}", "")
        narrow = getattr(ml_dtypes, dtype, None) if arrays[key].dtype.kind == "u" else None
        found[name] = arrays[key] if narrow is None else arrays[key].view(narrow)
    return found


def answer(question: Question) -> dict[str, Any]:
    """What is pinned of one explanation."""
    try:
        explanation = refkernels.explain(*question)
    except (ValueError, TypeError) as refusal:
        return {"verdict": "refused", "cause": str(refusal), "confidence": None}
    evidence = explanation.candidates[0].evidence if explanation.candidates else None
    return {
        "verdict": explanation.verdict,
        "cause": explanation.cause,
        "confidence": explanation.confidence,
        "bits": None if evidence is None or not explanation.cause else round(evidence.bits, 1),
    }


def run(out: Path, questions: Iterator[tuple[str, Question]]) -> None:
    """Appends the answers that the file lacks."""
    known = {line["name"] for line in diagnosis.kept(out)}
    with out.open("a", encoding="utf-8") as file:
        for name, question in questions:
            if name not in known:
                file.write(json.dumps({"name": name, **answer(question)}) + "\n")
                file.flush()


def compare(before: Path, after: Path) -> int:
    """Prints what changed, lost names first; 1 where a sure cause was lost."""
    old, new = ({line["name"]: line for line in diagnosis.kept(path)} for path in (before, after))
    changed: dict[str, list[str]] = collections.defaultdict(list)
    for name in old.keys() & new.keys():
        left, right = ([str(line[key]) for key in PINNED] for line in (old[name], new[name]))
        if left != right:
            lost = left[2] in SURE and right[2] not in SURE
            kind = "lost" if lost else "renamed" if left[1] != right[1] else "other"
            changed[kind].append(f"{name}: {' '.join(left)} -> {' '.join(right)}")
    for kind in ("lost", "renamed", "other"):
        print(f"{kind}: {len(changed[kind])}", *sorted(changed[kind]), sep="\n  ")
    print(f"compared: {len(old.keys() & new.keys())}")
    return int(bool(changed["lost"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seeds", type=int, default=1)  # of planted faults; 0: a corpus alone
    parser.add_argument("--corpus", type=Path, nargs="*", default=[])
    parser.add_argument("--compare", type=Path, nargs=2)
    given = parser.parse_args()
    if given.compare:
        return compare(*given.compare)
    for path in given.corpus:
        run(given.out, corpus(path))
    run(given.out, planted(given.seeds) if given.seeds else iter(()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
