"""The recipes for GitHub Actions and GitLab: their commands are run, for a change of the main
branch and then for a proposed one that makes the kernel worse."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from refkernels import registry

yaml = pytest.importorskip("yaml")

HERE = {"CI_DEFAULT_BRANCH": "main", "CI_API_V4_URL": "https://lab/api", "CI_PROJECT_ID": "7"}
PROPOSED = {**HERE, "CI_MERGE_REQUEST_IID": "3", "COMMENT_TOKEN": "secret"}
RECIPES = Path(__file__).parents[2] / "examples" / "ci"
KERNEL = """
import numpy as np


def layernorm(x, weight=None, bias=None, eps=1e-5, normalized_shape=None):
    axes = tuple(range(-len(normalized_shape or (0,)), 0))
    wide = x.astype(np.float64)
    d = wide - wide.mean(axes, keepdims=True)
    y = d / np.sqrt(np.square(d).mean(axes, keepdims=True) + eps)
    y = y if weight is None else y * weight.reshape(normalized_shape or -1)
    y = y if bias is None else y + bias.reshape(normalized_shape or -1)
    return y.astype(x.dtype)
"""
WORSE = KERNEL.replace("np.square(d).mean", "1.01 * np.square(d).mean")
BROKEN = KERNEL.replace("wide = x.astype", "raise ValueError('broken')\n    wide = x.astype")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where both recipes find what the other has measured: the same kernel, by the same words."""
    return tmp_path_factory.mktemp("measured")


@pytest.fixture
def place(tmp_path: Path, measured: Path) -> Path:
    """A checkout with a kernel; the recipe's tools write what they were called with."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (case,) = registry.get("layernorm").cases()[:1]
    scripts = {
        "refkernels": f'run="{sys.executable} -m refkernels"\n'
        '[ "$1" = measure ] || exec $run "$@"\n'
        f'kept={measured}/$(echo "$@" | cat - my_kernels.py | sha256sum | cut -c 1-32)\n'
        f'[ -d $kept ] || {{ $run "$@" --case {case.name} --dtype float32 || exit; '
        "cp -r now $kept; }\n"
        "[ -d now ] || cp -r $kept now\n",
        **{name: f'echo {name} "$@" >> {tmp_path}/called\n' for name in ("pip", "curl", "gh")},
    }
    for name, script in scripts.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}")
        (tools / name).chmod(0o755)
    return tmp_path


def check_out_again(place: Path) -> None:
    """The next job begins with what was kept, and nothing else that the last one wrote."""
    for folder in ("now", "changes"):
        shutil.rmtree(place / folder, ignore_errors=True)


def run(place: Path, script: str, **variables: str) -> int:
    path = f"{place / 'tools'}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(RECIPES.parents[1]), **variables}
    done = subprocess.run(["bash", "-ec", script], cwd=place, env=environment)
    return done.returncode


def read(name: str) -> dict[str, Any]:
    recipe: dict[str, Any] = yaml.safe_load((RECIPES / name).read_text(encoding="utf-8"))
    return recipe


def test_gitlab_s_keeps_the_main_branch_s_run_and_comments_on_a_worse_kernel(place: Path) -> None:
    job = read("gitlab.yml")["accuracy"]
    script = "\n".join(job["script"])
    (place / "my_kernels.py").write_text(KERNEL)
    assert run(place, script, **HERE, CI_COMMIT_BRANCH="main") == 0
    assert job["cache"]["paths"] == ["kept"]
    assert list((place / "kept").glob("records.jsonl*"))
    assert "curl" not in (place / "called").read_text()
    check_out_again(place)
    (place / "my_kernels.py").write_text(WORSE)
    assert run(place, script, **PROPOSED) != 0
    assert "https://lab/api/projects/7/merge_requests/3/notes" in (place / "called").read_text()
    assert "layernorm" in (place / "changes" / "compare.md").read_text()


def test_github_s_keeps_the_main_branch_s_run_and_comments_on_a_worse_kernel(place: Path) -> None:
    steps = read("github.yml")["jobs"]["measure"]["steps"]
    (place / "my_kernels.py").write_text(KERNEL)
    assert github(place, steps, "push") == 0
    assert list((place / "kept").glob("records.jsonl*"))
    assert "gh" not in (place / "called").read_text().split()
    check_out_again(place)
    (place / "my_kernels.py").write_text(WORSE)
    assert github(place, steps, "pull_request") != 0
    assert "gh pr comment 5 --body-file changes/compare.md" in (place / "called").read_text()
    assert "layernorm" in (place / "changes" / "compare.md").read_text()


@pytest.mark.parametrize("name", ["gitlab.yml", "github.yml"])
def test_a_kernel_that_fails_is_compared_and_commented_on(place: Path, name: str) -> None:
    recipe = read(name)

    def job(event: str) -> int:
        if name == "github.yml":
            return github(place, recipe["jobs"]["measure"]["steps"], event)
        variables = {**HERE, "CI_COMMIT_BRANCH": "main"} if event == "push" else PROPOSED
        return run(place, "\n".join(recipe["accuracy"]["script"]), **variables)

    (place / "my_kernels.py").write_text(KERNEL)
    assert job("push") == 0
    check_out_again(place)
    (place / "my_kernels.py").write_text(BROKEN)
    assert job("pull_request") != 0
    assert "changes/compare.md" in (place / "called").read_text()
    assert "no longer runs" in (place / "changes" / "compare.md").read_text()


def test_a_merge_request_reads_the_cache_of_the_protected_branch() -> None:
    # GitLab separates the caches of protected branches from those of others by default.
    assert read("gitlab.yml")["accuracy"]["cache"]["unprotect"] is True


def github(place: Path, steps: list[dict[str, Any]], event: str) -> int:
    """The status of a job's commands. Only these conditions are known, so that a new one fails."""
    output = place / "github_output"
    output.write_text("")
    ran = 0
    for step in steps:
        if "run" not in step:
            assert "uses" in step
            continue
        status = dict(line.split("=") for line in output.read_text().split()).get("status", "")
        conditions = {
            None: True,
            "hashFiles('kept/records.jsonl*') != ''": any(place.glob("kept/records.jsonl*")),
            "github.event_name == 'pull_request' && hashFiles('changes/compare.md') != ''": (
                event == "pull_request" and (place / "changes" / "compare.md").exists()
            ),
            "github.ref == 'refs/heads/main'": event == "push",
            "steps.compare.outputs.status != '' && steps.compare.outputs.status != '0'": (
                status not in ("", "0")
            ),
        }
        if not conditions[step.get("if")]:
            continue
        ran += 1
        script = step["run"].replace("${{ github.event.number }}", "5")
        if code := run(place, script, GITHUB_OUTPUT=str(output)):
            return code
    assert ran >= 3
    return 0
