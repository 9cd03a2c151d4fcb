"""Seats: each framework on each of its devices, ready to be asked; or the reason why it is not."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.frameworks.gateway import Reply, Session

Record = dict[str, Any]


@dataclass(frozen=True)
class Seat:
    """One framework on one device. `label` is how tables name it."""

    session: Session
    framework: str
    version: str | None
    device: str
    settings: dict[str, str]
    environment: str

    @property
    def label(self) -> str:
        return self.framework if self.device == "cpu" else f"{self.framework}@{self.device}"

    def run(
        self,
        op: str,
        direction: str,
        inputs: Mapping[str, npt.NDArray[Any]],
        params: Mapping[str, Any],
    ) -> Reply:
        """Ask the framework; whatever happens there comes back as a status."""
        contiguous = {name: np.ascontiguousarray(a).reshape(a.shape) for name, a in inputs.items()}
        return self.session.run(op, direction, contiguous, dict(params), device=self.device)


def open_sessions(
    frameworks: Sequence[str], settings: Mapping[str, str], timeout: float
) -> dict[str, Session]:
    """A started session for each framework, all of them at once; none raises."""

    def start(name: str) -> Session:
        session = Session(name, settings=dict(settings), timeout=timeout)
        session.start()
        return session

    with ThreadPoolExecutor(max(1, len(frameworks))) as pool:
        return dict(zip(frameworks, pool.map(start, frameworks), strict=True))


def take_seats(
    sessions: Mapping[str, Session], devices: Sequence[str], settings: Mapping[str, str]
) -> tuple[list[Seat], list[Record]]:
    """The seats, and an environment record for each framework that started.

    `devices` chooses by name ("cpu") or kind ("cuda" for cuda:0, cuda:1); empty takes all that a
    framework reports. A framework that did not start keeps one seat, which answers why.
    """
    seats: list[Seat] = []
    records: list[Record] = []
    for name, session in sessions.items():
        info = session.info or {}
        environment = {**info.get("environment", {}), "devices": info.get("devices", [])}
        environment.pop("executable", None)  # a path on this machine tells a reader nothing
        digest = hashlib.sha256(json.dumps(environment, sort_keys=True).encode()).hexdigest()
        identity = f"{name}-{digest[:12]}"
        version = info.get("version")
        if info:
            about = {"framework": name, "version": version, "settings": dict(settings)}
            records.append(
                {"schema": 1, "kind": "environment", "id": identity, **environment, **about}
            )
        available = list(info.get("devices", [])) or ["cpu"]
        chosen = [d for d in available if not devices or d in devices or d.split(":")[0] in devices]
        seats += [
            Seat(session, name, version, device, dict(settings), identity) for device in chosen
        ]
    return seats, records
