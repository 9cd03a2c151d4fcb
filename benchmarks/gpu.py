"""torch on a GPU, beside its CPU, against the oracles: TF32 off and on, all ops; then the sweeps.

    make gpu                                 where `refkernels env list` shows a torch with CUDA
    make gpu TORCH=/path/to/its/python       (remembered, as `refkernels env add torch` does)
    make gpu SWEEPS=1                        the sweeps alone, for a GPU of a few minutes
    python benchmarks/gpu.py --device cpu    a rehearsal without a GPU

The folder is named after the device, such as benchmarks/results/nvidia-h200, and keeps records and
tables. It may be stopped at any moment: the same command continues. What is finished there is not
asked again, even by another version of torch; another --out measures anew.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from refkernels import registry
from refkernels.frameworks import addition
from refkernels.frameworks.catalog import FrameworkError
from refkernels.frameworks.gateway import Session
from refkernels.records.files import exists
from refkernels.runs.measurement.journal import MeasurementJournal
from refkernels.runs.sweeps.journal import SweepJournal

RESULTS = Path(__file__).parent / "results"
TF32 = ("allow_tf32=0,cudnn_allow_tf32=0", "allow_tf32=1,cudnn_allow_tf32=1")
DTYPES = ("float16", "bfloat16", "float32")
CURE = "name a Python whose torch has CUDA: make gpu TORCH=/path/to/python"
STOPPED = "Stopped; finished work is kept: the same command continues."
_PATIENCE = 20.0  # seconds that a stopped command has to say what is kept


class Terminated(KeyboardInterrupt):
    """SIGTERM, as `timeout 5m make gpu` sends it."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--python", help="an interpreter that has torch with CUDA")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, ...; cpu rehearses")
    parser.add_argument("--out", type=Path, help="the folder (default: named after the device)")
    parser.add_argument("--op", action="append", default=[], help="all by default; repeatable")
    parser.add_argument("--range", help="of the sweeps, such as 1:2; all numbers by default")
    parser.add_argument("--sweeps", action="store_true", help="the sweeps alone")
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
    functions = (name for name, op in registry.ops().items() if op.function and not op.params)
    swept = sorted(name for name in functions if name in arguments.op or not arguments.op)
    if status in (0, 1) and swept and not finished(out, SweepJournal):  # 1: the report has a fault
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
    """The status of the command. If this process is stopped, so is the command."""
    with subprocess.Popen([sys.executable, "-m", "refkernels", *words]) as process:
        try:
            return process.wait()
        except KeyboardInterrupt as stop:
            if isinstance(stop, Terminated):  # Ctrl-C has reached the command as well
                process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE)
            raise
        finally:
            if process.poll() is None:
                process.terminate()


def terminate(*_: object) -> NoReturn:
    raise Terminated


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, terminate)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print(STOPPED, file=sys.stderr)
        sys.exit(130)
