"""This package's modules are executed in the default floating-point mode, in any thread."""

import importlib
import itertools
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from modes import KNOWN, set_mode

import refkernels
from refkernels import importing
from refkernels.arithmetic import mode

pytestmark = pytest.mark.skipif(not KNOWN, reason="how to set this machine's mode is not known")

SOURCE = """
from refkernels.arithmetic.mode import is_default

LEAST = 2.0**-1074
RIGHT = is_default()
"""
_numbers = itertools.count()
Importer = Callable[[], ModuleType]


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Importer]]:
    """How a module that lies in a folder, in a zip or is rewritten by pytest is imported by a
    thread that flushes subnormals; it is the package's for one test."""
    here = [*refkernels.__path__, str(tmp_path), str(tmp_path / "modules.zip")]
    monkeypatch.setattr(refkernels, "__path__", here)
    names = []

    def plant(way: str) -> Importer:
        name = f"planted_{next(_numbers)}"
        names.append(name)
        if way == "zip":
            with zipfile.ZipFile(tmp_path / "modules.zip", "a") as file:
                file.writestr(f"{name}.py", SOURCE)
        else:
            (tmp_path / f"{name}.py").write_text(SOURCE)
        if way == "rewritten":
            pytest.register_assert_rewrite(f"refkernels.{name}")
        importlib.invalidate_caches()

        def load() -> ModuleType:
            set_mode("flush")
            try:
                module = importlib.import_module(f"refkernels.{name}")
                assert not mode.is_default()
            finally:
                set_mode("default")
            return module

        return load

    yield plant
    for name in names:
        sys.modules.pop(f"refkernels.{name}", None)
        vars(refkernels).pop(name, None)


LOADERS = {
    "folder": "SourceFileLoader",
    "zip": "zipimporter",
    "rewritten": "AssertionRewritingHook",
}


@pytest.mark.parametrize("way", LOADERS)
def test_constants_are_right_whoever_loads_the_module(
    way: str, planted: Callable[[str], Importer], monkeypatch: pytest.MonkeyPatch
) -> None:
    if way != "rewritten":  # pytest's own finder takes every module of a plugin's distribution
        others = [entry for entry in sys.meta_path if type(entry).__name__ != LOADERS["rewritten"]]
        monkeypatch.setattr(sys, "meta_path", others)
    module = planted(way)()
    assert module.__spec__ is not None
    assert type(module.__spec__.loader).__name__ == LOADERS[way]
    assert module.RIGHT
    assert module.LEAST > 0.0
    assert module.LEAST / 2 == 0.0


def test_a_finder_put_in_front_later_is_still_asked_behind(
    planted: Callable[[str], Importer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pytest's is, where the package was imported before it."""
    finder = importing._Finder
    monkeypatch.setattr(sys, "meta_path", [entry for entry in sys.meta_path if entry is not finder])
    sys.meta_path.append(finder)
    importing.install()
    importing.install()
    assert sys.meta_path[0] is finder
    assert sys.meta_path.count(finder) == 1
    assert planted("rewritten")().RIGHT


def test_a_loader_of_many_modules_is_guarded_once(planted: Callable[[str], Importer]) -> None:
    loads = []
    for _ in range(3):
        spec = planted("rewritten")().__spec__
        assert spec is not None
        loads.append(vars(spec.loader)["exec_module"])
    assert loads[0] is loads[1] is loads[2]


def test_modules_of_others_run_in_the_thread_s_own_mode(
    tmp_path: Path, planted: Callable[[str], Importer], monkeypatch: pytest.MonkeyPatch
) -> None:
    planted("rewritten")()  # pytest's loader is guarded now
    (tmp_path / "not_ours_at_all.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    pytest.register_assert_rewrite("not_ours_at_all")
    set_mode("flush")
    module = importlib.import_module("not_ours_at_all")
    set_mode("default")
    assert not module.RIGHT
    sys.modules.pop("not_ours_at_all")
