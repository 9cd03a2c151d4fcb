"""torch on a GPU, beside its CPU, against the oracles: TF32 off and on, all ops; then the sweeps.

    make gpu                                 where `refkernels env list` shows a torch with CUDA
    make gpu TORCH=/path/to/its/python       (remembered, as `refkernels env add torch` does)
    python benchmarks/gpu.py --device cpu    a rehearsal without a GPU

The folder is named after the device, such as benchmarks/results/nvidia-h200, and keeps records and
tables. A stopped run resumes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from refkernels import registry
from refkernels.frameworks import addition
from refkernels.frameworks.catalog import FrameworkError
from refkernels.frameworks.gateway import Session

RESULTS = Path(__file__).parent / "results"
TF32 = ("allow_tf32=0,cudnn_allow_tf32=0", "allow_tf32=1,cudnn_allow_tf32=1")
DTYPES = ("float16", "bfloat16", "float32")
CURE = "name a Python whose torch has CUDA: make gpu TORCH=/path/to/python"


class NoDevice(Exception):
    """There is no such device; the message is one sentence with the cure."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", help="an interpreter that has torch with CUDA")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, ...; cpu rehearses")
    parser.add_argument("--out", type=Path, help="the folder (default: named after the device)")
    parser.add_argument("--op", action="append", default=[], help="all by default; repeatable")
    parser.add_argument("--range", help="of the sweeps, such as 1:2; all numbers by default")
    arguments, passed_on = parser.parse_known_args()
    try:
        if arguments.python:
            addition.add("torch", arguments.python)
        device, name = found(arguments.device)
        functions = sorted(n for n, op in registry.ops().items() if op.function and not op.params)
        chosen = [registry.get(op).name for op in arguments.op]
    except (NoDevice, FrameworkError, ValueError) as error:
        print(f"make gpu: {error}.", file=sys.stderr)
        return 2
    out = arguments.out or RESULTS / slug(name)
    ops = [word for op in chosen for word in ("--op", op)]
    names = [f"torch@{tf32}:{device}" for tf32 in TF32] + ["torch:cpu"] * (device != "cpu")
    seats = [word for name in names for word in ("--framework", name)]
    status = refkernels(
        "measure", "--full", *seats, *ops, "--out", str(out), "--resume", *passed_on
    )
    swept = [op for op in functions if op in chosen or not chosen]
    if status not in (0, 1) or not swept:  # 1: the report has a fault
        return status
    dtypes = [word for dtype in DTYPES for word in ("--dtype", dtype)]
    limits = ["--range", arguments.range] if arguments.range else []
    torch = ["--framework", f"torch:{device}", *dtypes, *limits]
    return max(status, refkernels("sweep", *swept, *torch, "--out", str(out), "--resume"))


def found(wanted: str) -> tuple[str, str]:
    """The wanted device of torch, and its description. Raises NoDevice."""
    with Session("torch") as session:
        if session.status != "ok":
            raise NoDevice(f"{session.reason}; or {CURE}")
        environment = session.info["environment"]
        for device, text in zip(session.info["devices"], environment["devices"], strict=True):
            if wanted in (device, device.split(":")[0]):
                return device, f"cpu {environment['cpu']}" if device == "cpu" else text
        devices = ", ".join(session.info["devices"])
        raise NoDevice(
            f"torch {session.info['version']} in {environment['executable']} has no {wanted}, only "
            f"{devices}; {CURE}"
        )


def slug(text: str) -> str:
    """`cuda:0 (NVIDIA H200)` is nvidia-h200."""
    inside = re.search(r"\((.+)\)$", text)
    return "-".join(re.findall(r"[a-z0-9]+", (inside[1] if inside else text).lower()))


def refkernels(*words: str) -> int:
    return subprocess.call([sys.executable, "-m", "refkernels", *words])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # the command that it interrupted says what is kept
        sys.exit(130)
