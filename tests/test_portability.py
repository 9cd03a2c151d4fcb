"""Functions that Windows lacks are guarded: modules import without them, uses check first."""

import ast
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "refkernels"
MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "posix"}
NAMES = {
    "os": {
        "fork", "forkpty", "getegid", "geteuid", "getgid", "getloadavg", "getpgid", "getpgrp",
        "getpriority", "getuid", "killpg", "mkfifo", "nice", "pipe2", "posix_fadvise",
        "posix_fallocate", "pread", "pwrite", "sched_getaffinity", "sched_setaffinity",
        "sched_yield", "setpgid", "setsid", "statvfs", "sysconf", "uname", "wait", "waitid",
    },
    "signal": {
        "SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSTOP",
        "SIGUSR1", "SIGUSR2", "alarm", "pause", "pthread_kill", "pthread_sigmask", "setitimer",
        "siginterrupt", "sigpending", "sigwait", "sigtimedwait",
    },
    "select": {"poll", "epoll", "kqueue"},
    "time": {"tzset", "pthread_getcpuclockid", "clock_gettime"},
}  # fmt: skip
STDLIB = {"statvfs"}  # what `shutil` itself has chosen by when it was imported
ABSENT = {module: sorted(names - STDLIB) for module, names in NAMES.items()}
IMPORTER = f"""
import importlib, pkgutil, re, sys
# What others import is theirs: numba, rich and the like have their own guards.
import concurrent.futures.process, execnet, flint, jinja2, matplotlib.figure, ml_dtypes, mpmath
import multiprocessing.forkserver, multiprocessing.popen_forkserver, numba, numpy, platformdirs
import matplotlib.backends.backend_agg, matplotlib.backends.backend_svg, packaging, pytest
import distributed, findpython, rich.console, rich.markdown, rich.progress, threadpoolctl, typer
import hypothesis, platform
platform.platform()
for name in {sorted(MODULES)}:
    sys.modules[name] = None
for module, names in {ABSENT}.items():
    for name in names:
        if hasattr(importlib.import_module(module), name):
            delattr(importlib.import_module(module), name)
import refkernels
count = 0
for found in pkgutil.walk_packages(refkernels.__path__, "refkernels."):
    if not re.search(r"[.]remote[.](?!worker)|[.]in_torch|[.]traces[.]", found.name):
        importlib.import_module(found.name)
        count += 1
from refkernels.frameworks.transport import SharedFolder
from refkernels.runs.sweeps.pool import _no_interrupt, usable_cores
with _no_interrupt():
    assert usable_cores() >= 1
del sys.modules["fcntl"]  # Windows has another lock, which nobody else has
folder = SharedFolder()
arrays = folder.send({{"x": numpy.ones(100_000)}})
assert folder.receive(arrays)["x"].sum() == 100_000
folder.close()
print(count)
"""


def uses(path: Path) -> set[str]:
    """module.name of what Windows lacks in a file, where the file does not ask for it first."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    used, checked = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in NAMES.get(node.value.id, ()):
                used.add(f"{node.value.id}.{node.attr}")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("hasattr", "getattr") and len(node.args) > 1:
                module, name = node.args[:2]
                if isinstance(module, ast.Name) and isinstance(name, ast.Constant):
                    checked.add(f"{module.id}.{name.value}")
        elif isinstance(node, ast.Import):
            used.update(alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            used.add(node.module)
    if any(ast.unparse(node) == "os.name" for node in ast.walk(tree) if hasattr(node, "attr")):
        checked |= MODULES  # imported on one side of a question for the system
    return used - checked


def test_what_windows_lacks_is_asked_for_before_it_is_used() -> None:
    unguarded = {path: uses(path) for path in PACKAGE.rglob("*.py")}
    assert len(unguarded) > 300
    assert [path for path, names in unguarded.items() if names] == []


def test_the_search_finds_what_it_looks_for(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("import os, fcntl, signal\nos.fork()\nsignal.SIGKILL\n")
    assert uses(tmp_path / "bad.py") == {"os.fork", "fcntl", "signal.SIGKILL"}
    (tmp_path / "good.py").write_text("import os\nif hasattr(os, 'fork'):\n    os.fork()\n")
    assert uses(tmp_path / "good.py") == set()


def test_every_module_is_imported_without_what_windows_lacks() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTER], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 200
