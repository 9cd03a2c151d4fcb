"""The one way this project compiles a kernel: cached on disk, IEEE semantics, never fastmath.

`error_model="numpy"` makes x / 0 an infinity as IEEE 754 says, where Numba would raise.

Numba's own cache checks only the file of a kernel, not the files of the kernels that it calls:
after an edit there it would run the old arithmetic. So each room's kernels are kept in a folder
named after all sources that go into them: the room's, this one's, and those of the rooms whose
kernels they call, which the room's package names in `__kernels_of__`, above its imports.
"""

import functools
import hashlib
import importlib
import os
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from refkernels.arithmetic import waiting
from refkernels.arithmetic.interruption import uninterrupted

_PACKAGE = Path(__file__).parent.parent
_KEPT = 8  # folders of earlier sources are kept, so that switching between versions costs nothing
_creation = threading.RLock()


class Kernel:
    """A function that Numba compiles, or reads from disk, when it is first called. Until then Numba
    is not imported."""

    in_use: ClassVar[bool] = False  # whether this process has used a kernel yet

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.py_func = function
        self.folder = cache_folder(function.__module__)  # of the sources as they are imported
        self._options = options
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.dispatcher(*arguments, **named)

    @functools.cached_property
    def dispatcher(self) -> Any:
        """Numba's kernel, one for all threads."""
        with _creation:
            if "dispatcher" not in vars(self):
                vars(self)["dispatcher"] = _dispatcher(self.py_func, self.folder, self._options)
                Kernel.in_use = True
            return vars(self)["dispatcher"]

    @property
    def signatures(self) -> list[Any]:
        """The types for which this process has compiled the kernel, or read it from disk."""
        return list(self.dispatcher.signatures) if "dispatcher" in vars(self) else []

    @property
    def is_kept(self) -> bool:
        """Whether the kernel has been compiled for some types, by this process or by an earlier one
        that kept it on disk."""
        if self.signatures:
            return True
        code = self.py_func.__code__
        own = re.sub("[<>]", "", self.py_func.__qualname__)  # as Numba names its files
        name = f"{Path(code.co_filename).stem}.{own}-{code.co_firstlineno}.py*.nbi"
        return self.folder is not None and any(self.folder.glob(f"*/{name}"))

    # What Numba asks of an object that a kernel names.

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    @property
    def targetoptions(self) -> Any:
        return self.dispatcher.targetoptions

    def __deepcopy__(self, memo: Any) -> "Kernel":
        return self

    def __reduce__(self) -> Any:
        name = str(self.py_func.__qualname__)
        if "<locals>" in name:  # no import finds that name; the function may pickle by itself
            return _again, (type(self), self.py_func, self._options)
        return name  # by its name, as functions are


class InnerKernel(Kernel):
    """A kernel that has no entry from Python."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        name = self.py_func.__name__
        raise TypeError(f"{name} is called by kernels only; from Python, call its .py_func.")


def _again(kind: type[Kernel], function: Callable[..., Any], options: dict[str, Any]) -> Kernel:
    return kind(function, **options)


def _dispatcher(function: Callable[..., Any], folder: Path | None, options: dict[str, Any]) -> Any:
    import numba

    if numba.config.DISABLE_JIT:
        raise RuntimeError(
            "NUMBA_DISABLE_JIT is set, and the kernels of refkernels run only as Numba compiles "
            "them: unset it."
        )
    waiting.listen()
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder or "")
    try:
        fixed = {"cache": folder is not None, "error_model": "numpy", "no_cfunc_wrapper": True}
        kernel = numba.njit(**{**fixed, **options})(function)
    finally:
        numba.config.CACHE_DIR = before
    kernel.compile = uninterrupted(kernel.compile)  # or reads it from disk
    return kernel


def njit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`numba.njit(cache=True, error_model="numpy")`, with this project's cache folder.

    Used bare or with options (`parallel=True`, `inline="always"`). No kernel gets a C callback,
    which would cost a tenth of the time to compile.
    """
    if function is None:
        return functools.partial(njit, **options)
    waiting.watch.loaded += 1
    return Kernel(function, **options)


def inner(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`njit` for a kernel that only kernels call. It has no entry from Python, which saves a fifth
    of the time to compile a small one. Called from Python it raises TypeError. Used bare or with
    options (`forceinline=True`: a loop with a call in it does not vectorise)."""
    if function is None:
        return functools.partial(inner, **options)
    waiting.watch.loaded += 1
    return InnerKernel(function, no_cpython_wrapper=True, **options)


def cache_folder(module: str) -> Path | None:
    """The folder of a module's compiled kernels; None where nothing can be written."""
    return _folder_of(room_of(module))


def room_of(module: str) -> str:
    """The room of a module of this package, "kernels.rows" or "contexts"; "" for others."""
    package, *parts = module.split(".")
    if package != "refkernels" or not parts:
        return ""
    return ".".join(parts[: 2 if parts[0] == "kernels" else 1])


@functools.cache
def _folder_of(room: str) -> Path | None:
    folder = _root() / f"{room or 'other'}-{_digest(room)}"
    if folder.is_dir() and os.access(folder, os.W_OK):
        return folder
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        waiting.unwritable(folder, error.strerror or type(error).__name__)
        return None
    newest_first = sorted(folder.parent.glob(f"{room or 'other'}-*"), key=_age, reverse=True)
    for old in newest_first[_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    return folder


def called_by(room: str) -> tuple[str, ...]:
    """The rooms whose kernels a room's kernels call, besides its own and arithmetic's."""
    package = importlib.import_module(f"refkernels.{room}") if room else None
    return getattr(package, "__kernels_of__", ())


def _age(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


def _root() -> Path:
    """$NUMBA_CACHE_DIR or $REFKERNELS_HOME where the user chose one, else the user's cache."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("REFKERNELS_HOME"):
        return Path(chosen).expanduser().absolute() / "kernels"
    import platformdirs

    return Path(platformdirs.user_cache_dir("refkernels")) / "kernels"


def _digest(room: str) -> str:
    """A digest of the sources' names, sizes and times: Numba's own criterion, for several files."""
    rooms = ("arithmetic", room or "arithmetic", *called_by(room))
    folders = {_PACKAGE.joinpath(*name.split(".")) for name in rooms}
    digest = hashlib.sha256(str(_PACKAGE).encode())
    sources = (path for folder in folders for path in folder.rglob("*"))
    for path in sorted(path for path in sources if path.suffix in (".py", ".json")):
        status = path.stat()
        digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]
