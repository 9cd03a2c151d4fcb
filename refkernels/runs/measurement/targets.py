"""Targets: each framework on each of its devices, ready to answer; or the reason why it is not."""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from refkernels.frameworks.catalog import FrameworkError
from refkernels.frameworks.gateway import Reply, Session
from refkernels.records.words import SCHEMA
from refkernels.runs.measurement.unanswered import TargetQuestion, Unanswered

Record = dict[str, Any]


@dataclass(frozen=True)
class Target:
    """One framework on one device. `framework` is its name without the device (`target_names`),
    `settings` are its own and those given to all. `absent` says why there is no such device; it is
    then the answer to every question. `formulas` names the formula of each op for which the
    framework has no kernel of its own. `emulated`: its interpreters take minutes to start.
    `unanswered`: questions that took too long."""

    session: Session
    framework: str
    version: str | None
    device: str
    settings: dict[str, str]
    environment: str
    absent: str | None = None
    formulas: Mapping[str, str] = field(default_factory=dict)
    emulated: bool = False
    unanswered: Unanswered = field(default_factory=Unanswered, compare=False)

    def label(self, op: str) -> str:
        """The name of the target in tables about `op`."""
        name = self.formulas.get(op, self.framework)
        return name if self.device == "cpu" else f"{name}:{self.device}"

    def head(self, kind: str, op: str, direction: str, dtype: str) -> dict[str, Any]:
        """How a record of the target begins."""
        return {
            "schema": SCHEMA,
            "kind": kind,
            "op": op,
            "direction": direction,
            "framework": self.framework,
            "version": self.version,
            "device": self.device,
            "dtype": dtype,
        }

    @property
    def name_only(self) -> "Target":
        """The target without its session, which cannot go to another process."""
        return replace(self, session=cast(Session, None), unanswered=Unanswered())

    def run(
        self,
        op: str,
        direction: str,
        inputs: Mapping[str, npt.NDArray[Any]],
        params: Mapping[str, Any],
        leaves: Collection[str] | None = None,
    ) -> Reply:
        """Ask the framework; any failure there is returned as a status."""
        if self.absent is not None:
            return Reply("unsupported", self.absent)
        question = TargetQuestion.of(op, direction, inputs, params)
        known_reply = self.unanswered.instead(question, self.session.limit)
        if known_reply is not None:
            return known_reply
        contiguous = {name: np.ascontiguousarray(a).reshape(a.shape) for name, a in inputs.items()}
        reply = self.session.run(
            op, direction, contiguous, dict(params), device=self.device, leaves=leaves
        )
        self.unanswered.add(question, reply)
        return reply


def opened(
    frameworks: Iterable[str], settings: Mapping[str, str], timeout: float
) -> dict[str, Session]:
    """A session for each name (without a device), with the settings given to all and its own. All
    start at the same time. A framework that fails to start raises nothing."""
    sessions = {name: Session(name, dict(settings), timeout) for name in frameworks}
    with ThreadPoolExecutor(max(1, len(sessions))) as pool:
        try:
            list(pool.map(Session.start, sessions.values()))
        except BaseException:
            abandon(sessions.values())
            raise
    return sessions


def close_all(sessions: Iterable[Session]) -> None:
    """Close all sessions at the same time: each waits for its interpreter to end."""
    closing = list(sessions)
    with ThreadPoolExecutor(max(1, len(closing))) as pool:
        list(pool.map(Session.close, closing))


def abandon(sessions: Iterable[Session]) -> None:
    """End the sessions at once, because stopping a run must not wait for an op that hangs."""
    for session in sessions:
        session.abandon()


def targets_of(
    sessions: Mapping[str, Session], devices: Mapping[str, Sequence[str]]
) -> tuple[list[Target], list[Record]]:
    """The targets, and an environment record for each framework that started.

    `devices` chooses for each session by name ("cpu") or kind ("cuda" for cuda:0, cuda:1); an empty
    choice takes every device that the framework reports. A framework that did not start, or has no
    such device, keeps one target that answers with the reason. Raises FrameworkError for a device
    that no framework has.
    """
    _refuse_unknown_devices(sessions, devices)
    targets: list[Target] = []
    records: list[Record] = []
    for name, session in sessions.items():
        info = session.info or {}
        environment = {**info.get("environment", {}), "devices": info.get("devices", [])}
        environment.pop("executable", None)  # a path on this machine means nothing to a reader
        digest = hashlib.sha256(json.dumps(environment, sort_keys=True).encode()).hexdigest()
        identity = f"{name}-{digest[:12]}"
        version = info.get("version")
        if info:
            about = {"framework": name, "version": version, "settings": session.settings}
            records.append(
                {"schema": SCHEMA, "kind": "environment", "id": identity, **environment, **about}
            )
        formulas, emulated = info.get("formulas", {}), "emulator" in environment
        targets += [
            Target(
                session, name, version, device, session.settings, identity, absent, formulas,
                emulated,
            )
            for device, absent in _places(name, info, devices[name])
        ]  # fmt: skip
    return targets, records


def _places(
    name: str, info: Mapping[str, Any], requested: Sequence[str]
) -> Iterator[tuple[str, str | None]]:
    """(device, None), or (device, why it is not there)."""
    if not info:
        yield (requested[0] if requested else "cpu"), None
        return
    available = list(info["devices"])
    yield from (
        (d, None) for d in available if not requested or any(_matches(d, a) for a in requested)
    )
    for wanted in requested:
        if not any(_matches(device, wanted) for device in available):
            yield wanted, f"{name} reports no device {wanted}: it has {', '.join(available)}"


def _matches(device: str, requested: str) -> bool:
    return requested in (device, device.split(":")[0])


def _refuse_unknown_devices(
    sessions: Mapping[str, Session], requested: Mapping[str, Sequence[str]]
) -> None:
    devices_of = {name: list(s.info["devices"]) for name, s in sessions.items() if s.info}
    for wanted in dict.fromkeys(device for name in devices_of for device in requested[name]):
        askers = [name for name in devices_of if wanted in requested[name]]
        if not any(_matches(device, wanted) for name in askers for device in devices_of[name]):
            listed = "; ".join(
                f"{name} has {', '.join(devices)}" for name, devices in devices_of.items()
            )
            raise FrameworkError(f"no framework reports a device {wanted!r} here: {listed}")
