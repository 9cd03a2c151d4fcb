"""Environments of another machine, with a fake emulator, fake packages and wheels from a folder."""

import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner
from wheels import write_wheel

from refkernels.cli.app import app
from refkernels.frameworks import catalog, environments
from refkernels.frameworks.catalog import REMOTE, Framework, FrameworkError
from refkernels.frameworks.creation import CreationFailed
from refkernels.frameworks.gateway import Session
from refkernels.judging.judge import judge
from refkernels.records.schema import complaint
from refkernels.runs.measurement.targets import close_all, opened, targets_of

TARGET = "elsewhere@machine=aarch64"
ELSEWHERE = Framework(
    "elsewhere", REMOTE / "numpy_adapter.py", version="2.0", machines={"aarch64": "1.0"}
)
EMULATOR = """#!/bin/sh
[ "$1" = --version ] && { echo "qemu-aarch64 version 7.2.22 (Debian 1:7.2)"; exit; }
[ "$1" = -L ] || exit 9
shift 2
exec "$@"
"""
APT = """#!/bin/sh
set -e
grep -q 'APT::Architecture "arm64"' "$APT_CONFIG"
folder=$(dirname "$APT_CONFIG")
case "$*" in *install*) cp "$0" "$folder/archives/python_arm64.deb";; esac
"""
UNPACK = f"""#!/bin/sh
mkdir -p "$3/usr/bin"
cat > "$3/usr/bin/python3.{sys.version_info[1]}" <<END
#!/bin/sh
PYTHONPATH="$3/usr/lib/python3/dist-packages" exec {sys.executable} "\\$@"
END
chmod +x "$3/usr/bin/python3.{sys.version_info[1]}"
"""

pytestmark = pytest.mark.skipif(
    platform.machine() == "aarch64" or sys.platform != "linux",
    reason="Linux on another machine than AArch64 emulates it",
)


@pytest.fixture
def tools(tmp_path: Path, fake_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the PATH that has an emulator, apt-get and dpkg-deb; `ELSEWHERE` can be had."""
    folder, wheels = tmp_path / "tools", tmp_path / "wheels"
    folder.mkdir()
    wheels.mkdir()
    for name, script in (("qemu-aarch64", EMULATOR), ("apt-get", APT), ("dpkg-deb", UNPACK)):
        write_script(folder / name, script)
    conditions = (
        "Requires-Dist: there; platform_machine == 'aarch64'\n"
        "Requires-Dist: nowhere; platform_machine != 'aarch64'\n"
    )
    python = f"cp3{sys.version_info[1]}"
    tag = f"{python}-{python}-manylinux_2_17_aarch64"
    write_wheel(wheels, "elsewhere", "__version__ = '1.0'\n", tag=tag, more=conditions)
    write_wheel(wheels, "there", "")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    catalog.register(ELSEWHERE)
    yield folder
    catalog.unregister("elsewhere")


def write_script(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def test_it_is_created_found_listed_and_removed(tools: Path) -> None:
    messages: list[str] = []
    with pytest.raises(environments.NotInstalled, match=r"create elsewhere --machine aarch64`$"):
        environments.find("elsewhere", "aarch64")
    made = environments.create("elsewhere", messages.append, "aarch64")
    assert (made.version, made.emulator, made.source) == ("1.0", "qemu-aarch64 7.2.22", "managed")
    assert "elsewhere on aarch64: pip install elsewhere==1.0" in messages
    packages = Path(made.python).parent.parent / "machine/usr/lib/python3/dist-packages"
    assert (packages / "there").is_dir()  # pip asked for this machine's requirements
    assert environments.find("elsewhere", "aarch64") == made
    assert environments.create("elsewhere==1.0", machine="aarch64").python == made.python
    with pytest.raises(environments.NotInstalled):  # for this machine it is not there
        environments.find("elsewhere")
    (line,) = [own for own in environments.listing() if own.name == TARGET]
    assert (line.state, line.version, line.path) == ("ready", "1.0", made.python)
    assert environments.managed("elsewhere") == []
    words = ["env", "remove", "elsewhere", "--machine", "aarch64", "--yes"]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert environments.managed("elsewhere", "aarch64") == []


def test_its_records_say_that_it_is_emulated_and_by_what(tools: Path) -> None:
    environments.create("elsewhere", machine="aarch64")
    sessions = opened([TARGET, "numpy"], {}, 10.0)
    try:
        (target, native), (environment, other) = targets_of(sessions, {TARGET: [], "numpy": []})
    finally:
        close_all(sessions.values())
    assert (target.emulated, native.emulated) == (True, False)
    assert environment["emulator"] == "qemu-aarch64 7.2.22"
    assert environment["cpu"] == f"emulated by qemu-aarch64 7.2.22 on {other['cpu']}"
    assert environment["settings"] == {"machine": "aarch64"}
    assert "emulator" not in other
    assert all(complaint(record) is None for record in (environment, other))


def test_an_emulated_session_is_given_more_time(tools: Path, tmp_path: Path) -> None:
    environments.create("elsewhere", machine="aarch64")
    (tmp_path / "late.py").write_text("import time\ndef sin(x):\n    time.sleep(60)\n")
    x = np.ones(3, np.float32)
    with Session(TARGET, timeout=20.0) as session:
        assert session._seconds(None) == 1000.0
        assert session.run("sin", "forward", {"x": x}).ok
    with Session(f"{tmp_path}/late.py:sin@python=elsewhere,machine=aarch64") as session:
        assert session.run("sin", "forward", {"x": x}, timeout=0.01).status == "timeout"


def test_a_kernel_is_run_there(tools: Path, tmp_path: Path) -> None:
    environments.create("elsewhere", machine="aarch64")
    (tmp_path / "mine.py").write_text("import numpy as np\ndef my_sin(x): return np.sin(x)\n")
    kernel = f"{tmp_path}/mine.py:my_sin"
    with Session(f"{kernel}@python=elsewhere,machine=aarch64") as session:
        assert session.status == "ok", session.reason
        assert session.info["environment"]["emulator"] == "qemu-aarch64 7.2.22"
    with Session(f"{kernel}@python=/usr/bin/python3,machine=aarch64") as session:
        assert "an interpreter of this machine" in str(session.reason)
    with pytest.raises(FrameworkError, match="on this machine only"):
        judge(f"{kernel}@machine=aarch64")


@pytest.mark.parametrize(
    ("missing", "fix"),
    [("qemu-aarch64", "apt install qemu-user"), ("apt-get", "on Debian or Ubuntu")],
)
def test_what_it_needs_is_a_sentence(
    tools: Path, monkeypatch: pytest.MonkeyPatch, missing: str, fix: str
) -> None:
    (tools / missing).unlink()
    monkeypatch.setenv("PATH", str(tools))
    with pytest.raises(CreationFailed, match=f"needs {missing}, .*{fix}"):
        environments.create("elsewhere", machine="aarch64")


def test_an_emulator_that_is_gone_is_told(tools: Path) -> None:
    environments.create("elsewhere", machine="aarch64")
    (tools / "qemu-aarch64").unlink()
    with Session(TARGET) as session:
        reason = str(session.reason)
    assert f"{tools}/qemu-aarch64 is not there: install it (Debian: apt install qemu" in reason


def test_this_machine_is_not_emulated_and_an_unknown_one_is_refused() -> None:
    here = platform.machine()
    assert environments.find("numpy", here) == environments.find("numpy")
    with pytest.raises(FrameworkError, match=f"no machine is named 'pdp11'.*aarch64, {here}"):
        environments.find("numpy", "pdp11")
    done = CliRunner().invoke(app, ["env", "create", "torch", "--machine", "pdp11"])
    assert done.exit_code == 2


def test_the_name_in_the_list_says_which_option_removes_it() -> None:
    # The name alone, as other targets are told, would delete the environment of this machine.
    done = CliRunner().invoke(app, ["env", "remove", "--yes", TARGET.replace("elsewhere", "torch")])
    assert done.exit_code == 2
    assert done.output.rstrip().endswith("write torch --machine aarch64.")


def test_the_host_s_processor_features_are_not_taken_for_the_emulated_one_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from refkernels.frameworks.remote import worker

    assert worker.cpu_features()
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert worker.cpu_features() == set()
