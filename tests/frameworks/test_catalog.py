"""Names, versions, pins, and how a third party adds a framework."""

import importlib.metadata
from pathlib import Path

import pytest

from refkernels.frameworks import catalog
from refkernels.frameworks.catalog import Framework


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
