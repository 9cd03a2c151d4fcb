"""Frameworks with planted faults, for every test that must see a fault named.

    fake = planted_faults.framework("one_ulp_off", tmp_path)      # a catalog.Framework
    with planted_faults.registered(fake):                         # now "fake_one_ulp_off" is a name
        with gateway.Session(fake) as session: ...

They run in the host's interpreter's executable and need NumPy alone.  The faults of processes and
exceptions strike at sin only; everything else works there.
"""

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from refkernels.frameworks import catalog
from refkernels.frameworks.catalog import Framework

SOURCE = Path(__file__).parent / "fake_adapter.py"
# Wrong numbers: the session says ok, whoever judges must see them.
WRONG_NUMBERS = ("one_ulp_off", "flush_to_zero", "swapped_gradients", "nan", "wrong_shape")
# What the session itself must report, and with which status.
STATUS_OF = {
    "crash": "killed",
    "abort": "killed",
    "exit": "killed",
    "hang": "timeout",
    "exception": "error",
    "oom": "oom",
    "device_oom": "oom",
    "device_lost": "error",
    "import_error": "import_error",
    "crash_at_import": "killed",
}
HARMLESS = ("correct", "noise")
FAULTS = (*HARMLESS, *WRONG_NUMBERS, *STATUS_OF)


def framework(fault: str, folder: Path) -> Framework:
    """The fake with this fault, named ``fake_FAULT``; its adapter is written into `folder`."""
    if fault not in FAULTS:
        raise ValueError(f"no fault is named {fault!r}; there are {', '.join(FAULTS)}")
    source = SOURCE.read_text(encoding="utf-8")
    planted = source.replace('FAULT = "correct"\n', f'FAULT = "{fault}"\n', 1)
    assert fault == "correct" or planted != source
    planted = planted.replace('FOLDER = ""\n', f"FOLDER = {str(folder)!r}\n", 1)
    adapter = folder / f"fake_{fault}_adapter.py"
    adapter.write_text(planted, encoding="utf-8")
    return Framework(f"fake_{fault}", adapter, module="numpy", python=sys.executable)


@contextlib.contextmanager
def registered(*frameworks: Framework) -> Iterator[None]:
    """The frameworks are in the catalog as long as this lasts."""
    for framework in frameworks:
        catalog.register(framework, replace_existing=True)
    try:
        yield
    finally:
        for framework in frameworks:
            catalog.unregister(framework.name)


def missing(folder: Path) -> Framework:
    """fake_missing, which is not installed."""
    return replace(framework("correct", folder), name="fake_missing", module="absent", python=None)


def fixture(*faults: str) -> Any:
    """A fixture: these frameworks are in the catalog for a module; it gives their folder."""

    def fakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
        folder = tmp_path_factory.mktemp("fakes")
        made = [missing(folder) if f == "missing" else framework(f, folder) for f in faults]
        with registered(*made):
            yield folder

    return pytest.fixture(scope="module", autouse=True)(fakes)
