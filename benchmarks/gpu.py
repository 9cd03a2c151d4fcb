"""torch on a GPU, beside its CPU, against the oracles: TF32 off and on, all ops; then the orders of
its sums and the sweeps.

    make gpu                                 where `refkernels env list` shows a torch with CUDA
    make gpu TORCH=/path/to/its/python       (remembered, as `refkernels env add torch` does)
    make gpu SWEEPS=1                        orders and sweeps alone, for a GPU of a few minutes
    python benchmarks/gpu.py --device cpu    a rehearsal without a GPU

The folder is named after the device, such as benchmarks/results/nvidia-h200, and keeps records and
tables. It may be stopped at any moment: the same command continues. What is finished there is not
asked again, even by another version of torch; another --out measures anew.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from refkernels import registry
from refkernels.cli.app import app
from refkernels.diagnosis.summation import RevealError
from refkernels.diagnosis.summation.boxes import OpBox
from refkernels.diagnosis.summation.orders import reveal_order
from refkernels.frameworks import addition
from refkernels.frameworks.catalog import FrameworkError
from refkernels.frameworks.gateway import Session
from refkernels.records.files import exists, write_whole
from refkernels.runs.measurement.journal import MeasurementJournal
from refkernels.runs.sweeps.journal import SweepJournal

RESULTS = Path(__file__).parent / "results"
TF32 = ("allow_tf32=0,cudnn_allow_tf32=0", "allow_tf32=1,cudnn_allow_tf32=1")
DTYPES = ("float16", "bfloat16", "float32")
CURE = "name a Python whose torch has CUDA: make gpu TORCH=/path/to/python"
SHAPES = {  # m, k, n, small ones first
    "matmul": "32x64x32 48x512x40 128x256x128 8x512x512 64x2048x64 1x1024x256 512x512x512",
    "sum": "32x64x1 32x1000x1 1024x256x1 1x4096x1",
    "embedding": "64x64x8 16x256x64",
    "conv2d": "64x72x32 196x576x64",
    "attention": "64x64x1 64x512x1",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--python", help="an interpreter that has torch with CUDA")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, ...; cpu rehearses")
    parser.add_argument("--out", type=Path, help="the folder (default: named after the device)")
    parser.add_argument("--op", action="append", default=[], help="all by default; repeatable")
    parser.add_argument("--range", help="of the sweeps, such as 1:2; all numbers by default")
    parser.add_argument("--shapes", type=int, help="of each op whose sums' order is asked")
    parser.add_argument("--sweeps", action="store_true", help="orders and sweeps alone")
    arguments, passed_on = parser.parse_known_args()
    try:
        if arguments.python:
            addition.add("torch", arguments.python)
        device, name = found(arguments.device)
    except FrameworkError as error:
        print(f"make gpu: {str(error).rstrip('.')}.", file=sys.stderr)
        return 2
    out = arguments.out or RESULTS / slug(name)
    into = ["--out", str(out), "--resume"]
    status = 0
    if not arguments.sweeps and not finished(out, MeasurementJournal):
        names = [f"torch@{tf32}:{device}" for tf32 in TF32] + ["torch:cpu"] * (device != "cpu")
        targets = [word for name in names for word in ("--framework", name)]
        chosen = [word for op in arguments.op for word in ("--op", op)]
        status = refkernels("measure", "--full", *targets, *chosen, *into, *passed_on)
    asked = [op for op in SHAPES if op in arguments.op or not arguments.op or arguments.shapes]
    if status in (0, 1):  # 1: the report has a fault; otherwise it was stopped
        orders(out / "orders.jsonl", device, asked, arguments.shapes)
    functions = (name for name, op in registry.ops().items() if op.function and not op.params)
    swept = sorted(name for name in functions if name in arguments.op or not arguments.op)
    if status in (0, 1) and swept and not finished(out, SweepJournal):
        formats = [word for dtype in DTYPES for word in ("--dtype", dtype)]
        part = ["--range", arguments.range] if arguments.range else []
        target = ["--framework", "torch", "--device", device]
        status = max(status, refkernels("sweep", *swept, *target, *formats, *part, *into))
    return status


def found(wanted: str) -> tuple[str, str]:
    """The wanted device of torch, and its description. Raises FrameworkError."""
    with Session("torch") as session:
        if session.status != "ok":
            raise FrameworkError(f"{session.reason}; or {CURE}")
        environment = session.info["environment"]
        for device, text in zip(session.info["devices"], environment["devices"], strict=True):
            if wanted in (device, device.split(":")[0]):
                return device, f"cpu {environment['cpu']}" if device == "cpu" else text
        devices = ", ".join(session.info["devices"])
        raise FrameworkError(f"torch {session.info['version']} has only {devices}; {CURE}")


def finished(out: Path, kind: type[MeasurementJournal] | type[SweepJournal]) -> bool:
    """Whether the folder holds the records of a finished run of this kind."""
    done = exists(out / kind.words.records) and not (out / kind.words.journal).exists()
    if done:
        print(f"{out / kind.words.records} is finished and kept: another --out asks anew.")
    return done


def slug(text: str) -> str:
    """`cuda:0 (NVIDIA H200)` is nvidia-h200."""
    inside = re.search(r"\((.+)\)$", text)
    return "-".join(re.findall(r"[a-z0-9]+", (inside[1] if inside else text).lower()))


def refkernels(*words: str) -> int:
    """The status of the command."""
    try:
        app(words)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def orders(path: Path, device: str, ops: list[str], most: int | None) -> None:
    """In which order torch adds, a line for each format and shape; those that the file has are not
    asked again."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    known = [json.loads(line)[:-1] for line in lines]
    for settings, dtypes in zip(TF32, (DTYPES, ("float32",)), strict=True):
        with Session(f"torch@{settings}:{device}") as session:
            for op, dtype in itertools.product(ops, dtypes):
                run, summed = ASKED.get(op, (answered, op))
                for shape in SHAPES[op].split()[:most]:
                    asked = [op, dtype, settings, shape]
                    if asked in known or asked[:2] == ["attention", "float16"]:
                        continue  # of which a mean over keys leaves no unit
                    m, k, n = map(int, shape.split("x"))
                    box = OpBox(partial(run, session, op), summed, k, m, n, dtype=dtype)
                    try:
                        order = reveal_order(box).name or "another tree"
                    except RevealError as error:
                        order = str(error)
                    lines.append(json.dumps([*asked, order]))
                    write_whole(path, "\n".join(lines) + "\n")


def answered(session: Session, op: str, inputs: dict[str, Any], **params: Any) -> dict[str, Any]:
    """The op's answer, or of a table its gradient. Raises RevealError where there is none."""
    scatter = registry.get(op).scatter if op in registry.ops() else None
    reply = session.run(op, "backward" if scatter else "forward", inputs, params)
    if not reply.ok:
        raise RevealError(reply.reason)
    return dict(reply.outputs)


def convolved(session: Session, op: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """A product as a convolution, 3 x 3, of patches that lie side by side."""
    a, b = (part.reshape(len(part), -1, 3, 3) for part in (inputs["a"], inputs["b"].T))
    x = a.transpose(1, 2, 0, 3).reshape(1, a.shape[1], 3, -1)
    y = answered(session, op, {"x": x, "weight": np.ascontiguousarray(b)}, stride=3)["y"]
    return {"c": y.reshape(len(b), len(a)).T}


def attended(session: Session, op: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """Sums of v: scores that are equal weigh all keys alike."""
    v = np.ascontiguousarray(inputs["x"].T)[None, None]
    y = answered(session, op, {"q": 0 * v, "k": 0 * v, "v": v})["y"]
    return {"y": y[0, 0, 0] * y.dtype.type(v.shape[2])}


ASKED = {"conv2d": (convolved, "matmul"), "attention": (attended, "sum")}


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # of `timeout 5m make gpu`
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("Stopped: the same command continues, what is finished is kept.", file=sys.stderr)
        sys.exit(130)
