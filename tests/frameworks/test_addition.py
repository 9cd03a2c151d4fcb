"""Adding an interpreter: it is started, and its version compared, before it is stored; removal."""

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkernels.frameworks import addition, catalog, environments, home, places
from refkernels.frameworks.catalog import Framework, FrameworkError
from refkernels.frameworks.environments import Interpreter
from refkernels.frameworks.process import NoReply, WorkerProcess

Fake = Callable[[str], Framework]


@pytest.fixture
def local_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for ssh that runs the remote command line here, and the file of its arguments."""
    folder = tmp_path / "bin"
    folder.mkdir()
    record = tmp_path / "arguments"
    (folder / "ssh").write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" >{record}\nfor last; do :; done\nexec /bin/sh -c "$last"\n'
    )
    (folder / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return record


def test_an_added_interpreter_is_asked_first_and_found_before_the_running_one(
    fake_home: Path, tmp_path: Path
) -> None:
    link = tmp_path / "python"
    link.symlink_to(sys.executable)
    added = addition.add("numpy", str(link))
    # A virtual environment's python must keep its own path: resolved, it is the base Python.
    assert added == Interpreter(catalog.get("numpy"), str(link), "named", np.__version__)
    assert environments.find("numpy") == added
    named = home.read_named()["numpy"]
    assert (named.version, named.python) == (np.__version__, sys.version.split()[0])
    (line,) = [entry for entry in environments.listing() if entry.source == "named"]
    assert (line.version, line.python, line.path) == (named.version, named.python, str(link))
    assert addition.forget("numpy") == str(link)
    assert addition.forget("numpy") is None
    assert environments.find("numpy").source == "running"


def test_another_machine_s_interpreter_is_asked_too(fake_home: Path, local_ssh: Path) -> None:
    place = f"ssh=user@host//python={sys.executable}"
    added = addition.add("numpy", place)
    assert (added.python, added.version, added.local) == (place, np.__version__, False)
    assert local_ssh.read_text().splitlines()[:2] == ["-C", "user@host"]


@pytest.mark.parametrize(
    ("name", "python", "said"),
    [
        ("torch", "/nothing/python", "is not an interpreter that can be run"),
        ("numpy", "/bin/true", "does not start"),
        ("numpy==0.1", sys.executable, f"the interpreter has version {np.__version__}"),
        ("import_error", sys.executable, "importing the framework raised"),
        ("crash_at_import", sys.executable, "the process was ended by"),
        ("torhc", sys.executable, "no framework is named 'torhc'"),
    ],
)
def test_an_interpreter_that_does_not_work_is_refused_in_a_sentence_and_not_kept(
    fake_home: Path, fake: Fake, name: str, python: str, said: str
) -> None:
    if name in ("import_error", "crash_at_import"):
        framework = replace(fake(name), python=None)
        catalog.register(framework)
        name = framework.name
    try:
        with pytest.raises(FrameworkError) as error:
            addition.add(name, python)
    finally:
        catalog.unregister(name)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert home.read_named() == {}


OPTION = "-oProxyCommand=touch${IFS}stolen"
REFUSED = [
    f"ssh={OPTION}//python=python3",
    f"ssh=me@host {OPTION}//python=python3",
    f"ssh=me@{OPTION}",
    f"ssh=me@host//python={OPTION}",
    "ssh=me@host//python=-oProxyCommand=/tmp/evil",
    "ssh=me@host//python= '-oProxyCommand=/tmp/evil' python3",
    "ssh=me@host//python=",
    "ssh=me@host//python='python3",
    "ssh=",
    "ssh",
    "ssh=host//ssh=other",
    "ssh=host//ssh_config=/tmp/evil",
    "vagrant_ssh=-oProxyCommand=x",
    "socket=host:1",
    "popen//ssh=host",
    "python=python3",
    "_x=1",
    "ssh=host//",
]


@pytest.mark.parametrize("place", REFUSED)
def test_a_place_that_would_hand_ssh_an_option_is_refused_when_added_and_when_used(
    fake_home: Path, local_ssh: Path, place: str
) -> None:
    with pytest.raises(FrameworkError, match=r"(does not name an|is not an?) (host|interpreter)"):
        addition.add("numpy", place)
    with pytest.raises(
        NoReply, match=r"(does not name an|is not an?) (host|interpreter)"
    ):  # as an edited file has it
        WorkerProcess(Interpreter(catalog.get("numpy"), place, "named"), {})
    assert not local_ssh.exists()


TEXTS = st.text("-oP=@ ./:\t\n'\"abc", max_size=12)


@given(TEXTS, TEXTS)
def test_no_word_of_an_accepted_place_is_an_option(host: str, python: str) -> None:
    try:
        places.check(f"ssh={host}//python={python}")
        words = places.command(python)
    except FrameworkError:
        return
    assert host.split() == [host]
    assert not any(part.startswith("-") for part in (host, host.rpartition("@")[2]))
    assert not shlex.join(words).startswith("-")  # the command line, which ssh is handed as a word


@pytest.mark.parametrize(
    ("place", "local"),
    [
        ("/a=b/python", True),
        ("./python", True),
        ("python3.10", True),
        ("popen//python=python3.10", True),
        ("ssh=me@host//python=python3", False),
        ("ssh=[::1]", False),
    ],
)
def test_places_that_are_right_are_accepted(place: str, local: bool) -> None:
    places.check(place)
    assert places.is_local(place) == local
    assert places.is_spec(place) == place.startswith(("popen", "ssh"))


def test_names_that_cannot_be_kept_are_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    for wrong in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/self")):
        monkeypatch.setenv("REFKERNELS_HOME", str(wrong))
        with pytest.raises(FrameworkError, match=r"cannot be (written|read) .*(REFK|repair)"):
            addition.add("numpy", sys.executable)
        with pytest.raises(FrameworkError, match=r"cannot be made .*REFKERNELS_HOME"):
            environments.create("torch")
