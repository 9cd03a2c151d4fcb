"""Sessions shared by the tests against real frameworks, and the fakes.

A framework that is not installed is a skip that says why; with REFKERNELS_REQUIRE=torch,paddle,...
it is a failure.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from refkernels.frameworks import environments
from refkernels.frameworks.catalog import Framework
from refkernels.frameworks.gateway import Session

sys.path.append(str(Path(__file__).parent / "fakes"))

import planted_faults


@pytest.fixture(scope="session")
def session_for() -> Iterator[Callable[[str], Session]]:
    """session_for(name): the started session of a real framework, one for all tests."""
    sessions: dict[str, Session] = {}

    def get(name: str) -> Session:
        if name not in sessions:
            sessions[name] = Session(name)
            sessions[name].start()
        session = sessions[name]
        if session.start():
            return session
        reason = f"{name}: {session.status}: {session.reason}"
        if name.partition("==")[0] in environments.required():
            pytest.fail(f"REFKERNELS_REQUIRE lists {reason}", pytrace=False)
        pytest.skip(reason)

    yield get
    for session in sessions.values():
        session.close()


@pytest.fixture(scope="session")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Framework]:
    """fake(fault): a framework with a planted fault."""
    folder = tmp_path_factory.mktemp("fakes")
    return lambda fault: planted_faults.framework(fault, folder)


@pytest.fixture
def fake_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in the place of the user's cache."""
    monkeypatch.setenv("REFKERNELS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
