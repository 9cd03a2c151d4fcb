"""Which settings change bits: each target with settings against a target with fewer of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from refkernels.reporting.measure.study import Measurement, Study
from refkernels.target_names import TargetName, TargetNameError, parse

Place = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class SettingEffect:
    """What the additional settings of `subject` change against `base`: the bits of `changed` of
    their `outputs` common outputs, of these `ops`."""

    subject: str
    base: str
    outputs: int
    changed: int
    ops: tuple[str, ...]


def setting_effects(study: Study) -> list[SettingEffect]:
    """Each target with settings against the target that lacks the fewest of them."""
    digests: dict[str, dict[Place, str]] = {}
    for m in study.measurements:
        if (digest := m.record.get("digest")) is not None:
            digests.setdefault(m.subject, {})[_place(m)] = str(digest)
    names = dict(_named(digests))
    effects = []
    for subject, name in names.items():
        smaller = [
            other
            for other, other_name in names.items()
            if other_name != name and _without_settings(other_name) == _without_settings(name)
            and set(other_name.settings) < set(name.settings)
        ]  # fmt: skip
        if not smaller:
            continue
        base = max(smaller, key=lambda other: len(names[other].settings))
        shared = digests[subject].keys() & digests[base].keys()
        changed = [place for place in shared if digests[subject][place] != digests[base][place]]
        ops = tuple(sorted({place[0] for place in changed}))
        effects.append(SettingEffect(subject, base, len(shared), len(changed), ops))
    return effects


def _place(m: Measurement) -> Place:
    return m.op, m.direction, m.output, m.dtype, m.case


def _named(subjects: dict[str, dict[Place, str]]) -> Iterator[tuple[str, TargetName]]:
    for subject in subjects:
        try:
            yield subject, parse(subject)
        except TargetNameError:  # a formula, or words
            continue


def _without_settings(name: TargetName) -> tuple[object, ...]:
    return name.framework, name.version, name.kernel, name.device
