"""Names, versions, pins, and how a third party adds a framework."""

import importlib.metadata
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from refkernels.frameworks import catalog, creation, environments, home, versions
from refkernels.frameworks.catalog import Framework
from refkernels.frameworks.environments import NotInstalled


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(catalog.UnknownFramework, match=r"no framework is named 'tensorfow'.*torch"):
        catalog.get("tensorfow==1")


@pytest.mark.parametrize("name", ["torch==", "torch==new"])
def test_a_wrong_version_is_refused_with_the_right_form(name: str) -> None:
    with pytest.raises(catalog.UnknownFramework, match=r"torch==X\.Y\.Z"):
        catalog.get(name)


@pytest.mark.parametrize("name", ["torch@A=1", "torch:cuda:0"])
def test_where_a_framework_is_named_alone_a_target_is_refused(name: str) -> None:
    with pytest.raises(catalog.UnknownFramework, match="give torch alone"):
        catalog.get(name)
    spec, target = catalog.target(name)
    assert (spec.name, str(target)) == ("torch", name)


def test_a_framework_name_that_cannot_be_typed_is_refused() -> None:
    with pytest.raises(ValueError, match="a framework's name"):
        Framework("my:framework", Path("f.py"))


def test_a_registered_framework_has_a_name_until_it_is_unregistered() -> None:
    framework = Framework("mine", Path("mine_adapter.py"), module="numpy")
    catalog.register(framework)
    try:
        assert catalog.get("mine").framework is framework
        with pytest.raises(ValueError, match="already in the catalog"):
            catalog.register(framework)
    finally:
        catalog.unregister("mine")
    assert "mine" not in catalog.names()


def theirs() -> Framework:
    """What a third party's entry point names."""
    return Framework("theirs", Path("theirs_adapter.py"))


def test_an_entry_point_adds_a_framework_and_a_broken_one_stops_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = {"theirs": "test_catalog:theirs", "broken": "nothing_here:FRAMEWORK"}
    group = catalog.ENTRY_POINT_GROUP
    points = [importlib.metadata.EntryPoint(*pair, group) for pair in names.items()]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points)
    catalog._from_entry_points.cache_clear()
    try:
        assert catalog.get("theirs").framework.adapter == Path("theirs_adapter.py")
        assert catalog.get("numpy").name == "numpy"
        assert "broken" not in catalog.names()
        said = r"^broken cannot be loaded from .* nothing_here:FRAMEWORK \(ModuleNotFound"
        with pytest.raises(catalog.UnknownFramework, match=said):
            catalog.get("broken")
    finally:
        catalog._from_entry_points.cache_clear()
        catalog._broken.clear()


PUBLIC = st.builds(
    "{}.{}.{}{}".format,
    *[st.integers(0, 30)] * 3,
    st.sampled_from(["", "a0", "rc1", ".post2", ".dev20260101"]),
)
LABEL = st.from_regex(
    r"\+(cpu|cu12[0-9]|git[0-9a-f]{7}|[a-z0-9]{1,5}(\.[a-z0-9]{1,5})?)", fullmatch=True
)


@given(PUBLIC, LABEL)
def test_a_version_without_a_label_means_every_build_and_one_with_it_that_build(
    public: str, label: str
) -> None:
    built = public + label
    assert versions.fits(built, public)
    assert versions.fits(built, built)
    assert not versions.fits(public, built)
    assert not versions.fits(f"{built}x", built)
    # A wheel's metadata may leave the label out; then only the framework itself can tell.
    assert versions.may_fit(public, built)
    assert versions.may_fit("", built)
    assert not versions.may_fit(f"{built}x", built)


@given(PUBLIC, PUBLIC)
def test_another_public_version_never_fits(found: str, wanted: str) -> None:
    same = Version(found) == Version(wanted)
    assert versions.fits(found, wanted) == versions.may_fit(found, wanted) == same


@given(PUBLIC, st.just("") | LABEL)
def test_a_name_with_any_version_is_typed_back_as_it_is_printed(public: str, label: str) -> None:
    printed = str(catalog.get(f"torch=={public}{label}"))
    assert str(catalog.get(printed)) == printed
    assert versions.fits(public + label, printed.partition("==")[2])


@pytest.fixture
def tiny(fake_home: Path) -> Framework:
    """A framework that no interpreter here has."""
    framework = Framework(
        "tiny", Path("tiny_adapter.py"), module="tiny_of_nobody", version="2.13.0"
    )
    catalog.register(framework)
    yield framework
    catalog.unregister("tiny")


def make_environment(name: str, version: str, reported: str) -> Path:
    """A folder that counts as a complete managed environment."""
    folder = home.home() / "environments" / f"{name}-{version}"
    python = creation.python_of(folder)
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (folder / creation.MARKER).write_text(json.dumps({"version": reported, "python": "3.11.7"}))
    return folder


@pytest.mark.parametrize("asked", ["tiny", "tiny==2.13.0", "tiny==2.13", "tiny==2.13.0+cpu"])
def test_a_managed_environment_is_found_by_every_name_of_its_version(
    tiny: Framework, asked: str
) -> None:
    folder = make_environment("tiny", "2.13.0", "2.13.0+cpu")
    assert environments.find(asked).python == str(creation.python_of(folder))
    assert environments.create(asked).python == str(creation.python_of(folder))
    assert environments.managed(asked) == [folder]


@pytest.mark.parametrize("asked", ["tiny==2.13.0+cu126", "tiny==2.13.1"])
def test_another_build_is_not_taken_for_it(tiny: Framework, asked: str) -> None:
    make_environment("tiny", "2.13.0", "2.13.0+cpu")
    with pytest.raises(NotInstalled, match="env create"):
        environments.find(asked)
    assert environments.managed(asked) == []


def test_a_bare_name_means_the_pinned_version(tiny: Framework) -> None:
    make_environment("tiny", "1.9.0", "1.9.0+cpu")
    with pytest.raises(NotInstalled):
        environments.find("tiny")
    folder = make_environment("tiny", "2.13.0", "2.13.0+cpu")
    assert environments.find("tiny").python == str(creation.python_of(folder))


def test_a_framework_s_environments_are_not_those_of_one_with_a_longer_name(
    tiny: Framework,
) -> None:
    make_environment("tiny-npu", "2.13.0", "2.13.0")
    assert environments.managed("tiny") == []
    with pytest.raises(NotInstalled):
        environments.find("tiny")


def test_metadata_without_the_label_leaves_the_answer_to_the_session(
    fake_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    framework = Framework("labelled", Path("adapter.py"), module="numpy")
    catalog.register(framework)
    monkeypatch.setattr("importlib.metadata.version", lambda name: "2.13.0")
    try:
        assert environments.find("labelled==2.13.0+cu126").source == "running"
        with pytest.raises(NotInstalled):
            environments.find("labelled==2.14.0+cu126")
        # One that is known to fit comes before one that may.
        folder = make_environment("labelled", "2.13.0", "2.13.0+cu126")
        interpreter = environments.find("labelled==2.13.0+cu126")
        assert interpreter.python == str(creation.python_of(folder))
    finally:
        catalog.unregister("labelled")


def test_a_named_interpreter_is_found_by_the_version_that_it_reported(
    tiny: Framework, fake_home: Path
) -> None:
    home.write_named({"tiny": home.NamedEnvironment("/my/python", "2.14.0+rocm6.4")})
    for name in ("tiny", "tiny==2.14.0", "tiny==2.14.0+rocm6.4"):
        assert environments.find(name).python == "/my/python"
    # It may have been upgraded since: its session compares what it tells then.
    assert environments.find("tiny==2.15.0").python == "/my/python"
    folder = make_environment("tiny", "2.13.0", "2.13.0+cpu")
    assert environments.find("tiny==2.13.0").python == str(creation.python_of(folder))
    assert environments.find("tiny").python == "/my/python"
