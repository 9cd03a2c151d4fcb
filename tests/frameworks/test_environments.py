"""Finding, making, naming and removing interpreters, without installing a framework."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pip
import pytest
from wheels import write_wheel

from refkernels.frameworks import catalog, creation, environments
from refkernels.frameworks.catalog import Framework, FrameworkError, Pin, Spec
from refkernels.frameworks.environments import NotInstalled
from refkernels.frameworks.gateway import Session

ADAPTER = Path("adapter.py")


TINY = Framework("tinyframework", ADAPTER, version="1.0", requirements=("numpy==1.0",))


@dataclass
class Created:
    """What `create_all` returned and printed, and where it made environments."""

    home: Path
    outcomes: list[environments.CreationOutcome]
    messages: list[str]

    @property
    def python(self) -> Path:
        """Of the complete environment."""
        (path,) = {outcome.interpreter.python for outcome in self.outcomes if outcome.interpreter}
        return Path(path)


@pytest.fixture(scope="module")
def created(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Created]:
    """Environments of a framework that pip installs from a local wheel. One is asked for twice, pip
    does not find another, one does not exist, and one fails to import. All are copies of one empty
    environment, whose pip is a copy: to install it takes seconds."""
    folder = tmp_path_factory.mktemp("created")
    empty, python = folder / "empty", folder / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(empty)], check=True)
    (packages,) = empty.glob("lib/python*/site-packages")
    shutil.copytree(Path(pip.__file__).parent, packages / "pip")
    python.write_text(
        f"""#!/bin/sh
if [ "$1 $2" = "-m venv" ]; then exec cp -R '{empty}' "$3"; fi
exec '{sys.executable}' "$@"
"""
    )
    python.chmod(0o755)
    wheels, messages = folder / "wheels", list[str]()
    wheels.mkdir()
    write_wheel(wheels, "tinyframework", "__version__ = '1.0'\n")
    write_wheel(wheels, "tinyframework", "raise ImportError('libtiny.so is missing')\n", "2.0")
    write_wheel(wheels, "numpy", "__version__ = '1.0'\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REFKERNELS_HOME", str(folder / "home"))
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_FIND_LINKS", str(wheels))
        patch.setenv("PIP_CONFIG_FILE", os.devnull)
        patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        patch.setattr(creation, "_candidates", lambda: iter([str(python)]))
        catalog.register(TINY)
        names = ["tinyframework", "tinyframework==1.0", "torch==0.0.1"]
        outcomes = environments.create_all(
            [*names, "nosuch", "tinyframework==2.0"], messages.append
        )
        yield Created(folder / "home", outcomes, messages)
        catalog.unregister("tinyframework")


def test_importing_the_room_is_light() -> None:
    code = (
        "import sys; from refkernels.frameworks import catalog, environments;"
        "catalog.names();"
        "print([m for m in ('numpy', 'numba', 'execnet', 'findpython') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_numpy_is_found_in_the_running_interpreter(fake_home: Path) -> None:
    interpreter = environments.find("numpy")
    assert (interpreter.source, interpreter.python, interpreter.local) == (
        "running",
        sys.executable,
        True,
    )


def test_another_version_than_the_running_one_is_not_found_there(fake_home: Path) -> None:
    with pytest.raises(NotInstalled, match=r"numpy==0.1"):
        environments.find("numpy==0.1")


def test_a_broken_file_of_names_is_reported(fake_home: Path) -> None:
    fake_home.mkdir(parents=True)
    wrong = ["{", "[1]", '{"torch": 1}', '{"torch": {"path": "x"}}', "[" * 100_000, '"torch"']
    for content in wrong:
        (fake_home / "interpreters.json").write_text(content, encoding="utf-8")
        with pytest.raises(FrameworkError, match="repair or delete it"):
            environments.find("numpy")
    assert len(wrong) == 6


def test_an_environment_that_fails_does_not_stop_the_others(created: Created) -> None:
    outcomes, messages = created.outcomes, created.messages
    assert [outcome.interpreter is None for outcome in outcomes] == [False, False, True, True, True]
    assert any("ERROR" in line for line in messages if line.startswith("torch==0.0.1:"))
    assert "No matching distribution found for torch==0.0.1" in str(outcomes[2].reason)
    assert "no framework is named 'nosuch'" in str(outcomes[3].reason)
    assert "`import tinyframework` fails: ImportError: libtiny" in str(outcomes[4].reason)
    assert all("\n" not in str(outcome.reason) for outcome in outcomes)


def test_two_processes_that_create_at_once_make_it_once(created: Created) -> None:
    assert sum("ready" in line for line in created.messages) == 1
    assert sum("waiting for another process" in line for line in created.messages) == 1


def test_a_failing_import_is_never_taken_as_complete(created: Created) -> None:
    with pytest.raises(NotInstalled, match="interrupted"):
        environments.find("tinyframework==2.0")


def test_creating_makes_finds_lists_and_removes(created: Created) -> None:
    made = environments.find("tinyframework")
    assert (made.version, made.python) == ("1.0", str(created.python))
    compiled = created.python.parent.parent.rglob("tinyframework/__pycache__/*.pyc")
    assert len(list(compiled)) == 1, "what is imported is compiled once"
    assert any("pip install tinyframework==1.0" in line for line in created.messages)
    assert environments.find("tinyframework==1.0").python == made.python
    assert _line().state == "ready"
    assert (_line().version, _line().source) == ("1.0", "managed")
    again: list[str] = []
    assert environments.create("tinyframework", again.append) == made
    assert again == []
    (created.python.parent.parent / creation.MARKER).unlink()
    assert (_line().state, "interrupted" in _line().fix) == ("broken", True)
    with pytest.raises(NotInstalled, match=r"its creation was interrupted: run `refkernels env"):
        environments.find("tinyframework")
    for folder in environments.managed("tinyframework"):
        environments.delete(folder)
    assert [*(created.home / "environments").glob("tiny*")] == []


def _line() -> environments.Listed:
    return next(
        entry
        for entry in environments.listing()
        if entry.name == "tinyframework" and not entry.version.startswith("2")
    )


def test_no_fitting_python_comes_with_the_cure(
    fake_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creation, "_candidates", lambda: iter([sys.executable]))
    framework = Framework("ancient", ADAPTER, pins=(Pin("", "==2.7.*"),))
    with pytest.raises(creation.NoFittingPython, match=r"no Python ==2\.7\.\* .*install one"):
        environments.create(Spec(framework))


def test_a_python_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    shim = tmp_path / "python3.10"
    shim.write_text("#!/bin/sh\necho 'pyenv: python3.10: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    assert creation._version_if_usable(str(shim)) is None
    assert creation._version_if_usable(str(tmp_path / "missing")) is None


def test_a_full_disk_is_reported_as_one() -> None:
    lines = ["Collecting torch", "ERROR: [Errno 28] No space left on device"]
    failure = creation._failure(catalog.get("torch"), "pip install ...", "python", lines)
    assert "the disk filled up while torch was installed" in str(failure)


def test_the_last_error_of_pip_is_quoted() -> None:
    lines = ["Collecting torch", "ERROR: a", "ERROR: Could not find a wheel", "WARNING: old pip"]
    failure = creation._failure(catalog.get("torch"), "pip install ...", "python", lines)
    assert str(failure).endswith(
        "`pip install ...` failed for torch: ERROR: Could not find a wheel"
    )


def test_a_step_that_a_signal_ended_is_not_blamed_on_its_last_line() -> None:
    killed = ["/bin/sh", "-c", "echo Processing pygments; kill -TERM $$"]
    with pytest.raises(
        creation.CreationFailed, match=r"`pip install` for torch was ended by SIGTERM"
    ):
        creation.checked(killed, catalog.get("torch"), lambda line: None, step="pip install")


def test_a_marker_without_its_python_is_not_complete(tmp_path: Path) -> None:
    (tmp_path / creation.MARKER).write_text(json.dumps({"version": "1"}), encoding="utf-8")
    assert creation.marker(tmp_path) is None


def test_the_required_frameworks_are_read_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REFKERNELS_REQUIRE", "torch, paddle,")
    assert environments.required() == {"torch", "paddle"}
    monkeypatch.delenv("REFKERNELS_REQUIRE")
    assert environments.required() == frozenset()


def test_the_c_library_is_the_running_interpreters_whatever_version_is_asked_for() -> None:
    for name in ("libm", "libm==0.1"):
        interpreter = environments.find(name)
        assert (interpreter.python, interpreter.source) == (sys.executable, "running")
        assert environments.create(name) == interpreter
    with Session("libm==0.1") as session:
        assert session.status != "ok"
        assert "0.1" in str(session.reason)


def test_a_full_disk_is_told_where_venv_does_not_say_so(
    fake_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failed(*_: object) -> str:
        raise creation.CreationFailed(
            "`-m venv` failed: ensurepip returned non-zero exit status 1."
        )

    monkeypatch.setattr(creation, "checked", failed)
    with pytest.raises(creation.CreationFailed, match="ensurepip returned"):
        environments.create("jax")
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10, 10, 0))
    with pytest.raises(
        creation.CreationFailed, match=r"^the disk filled up while jax was installed"
    ):
        environments.create("jax")
    error = OSError(errno.ENOSPC, "No space left on device")
    assert "filled up" in str(creation.unwritten(catalog.get("jax"), fake_home, error))
