"""`run.json`: the state of a run directory, and which files make up its results.

The tables, what was run and the list of kept pictures belong together: `run.json` holds the hash of each and is written
last, in one step. Reading results starts with checking those hashes, so that tables of one run are never read with the
directions, controls or study of another.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import msgspec

from heatproof.errors import BadInput
from heatproof.storage import sealed_json
from heatproof.storage.atomic_file import content_of, sha256_of, write_atomically

FILE = "run.json"
AGAIN = "run the same command again: what is finished is kept"
TICK = 10.0  # seconds between two updates of the stored time
State = Literal["running", "stopped", "failed", "complete"]
# File -> hash. No file has a name with a null byte, and asking for one is an error.
FileHashes = Mapping[Annotated[str, msgspec.Meta(pattern=r"^[^\0]+$")], str]


@dataclass(frozen=True)
class RunState:
    """The state of the work in a run directory."""

    state: State
    began: float  # of the work that goes on here, in seconds since 1970
    seconds: float = 0.0  # spent on it, in all calls
    reason: str = ""  # why it failed or was stopped
    results: FileHashes = field(default_factory=dict)  # file -> hash, of the last results that were committed
    partial: str = ""  # of which part of the study, if those results are not of all of it

    @property
    def commit(self) -> str:
        """The identity of the committed results, a hash; empty if there are none."""
        return (
            hashlib.sha256(json.dumps(dict(self.results), sort_keys=True).encode()).hexdigest() if self.results else ""
        )

    def write(self, root: Path) -> None:
        write_atomically(root / FILE, sealed_json.written(dataclasses.asdict(self)))

    @classmethod
    def read(cls, root: Path) -> RunState | None:
        """The state of a run directory, or None where no run has begun; `Damaged` if it cannot be trusted."""
        try:
            payload = content_of(root / FILE)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return sealed_json.typed(cls, sealed_json.read(payload, root / FILE), root / FILE)


class Record:
    """The state of a run that is under way, kept on disk so that time and outcome are true however it ends."""

    def __init__(self, root: Path, resumed: bool) -> None:
        before = known(root)
        self.root = root
        self.state = before if before and resumed else RunState("running", time.time())
        self.state = dataclasses.replace(self.state, results=before.results if before else {})
        self._since = self._written = time.monotonic()
        self.write("running", reason="")

    def at(self, state: State, **changes: Any) -> RunState:
        """The state now, with the time spent so far."""
        spent = self.state.seconds + time.monotonic() - self._since
        return dataclasses.replace(self.state, state=state, seconds=spent, **changes)

    def write(self, state: State, **changes: Any) -> None:
        self.at(state, **changes).write(self.root)
        self._written = time.monotonic()

    def tick(self) -> None:
        """Store the time spent, every few seconds: a run that is killed has spent it too."""
        if time.monotonic() - self._written > TICK:
            self.write("running", reason="")


def known(root: Path) -> RunState | None:
    """The state of a directory; None if it is damaged, since the run then writes a new one."""
    try:
        return RunState.read(root)
    except BadInput:
        return None


def committed(root: Path) -> RunState:
    """The state of a directory whose results are complete and belong together; else an error says what to do."""
    try:
        found = RunState.read(root)
    except sealed_json.Damaged as error:
        raise sealed_json.Damaged(f"{error}; {AGAIN}") from error
    if found is None or not found.results:
        what = _unfinished(found) if found else "it has no run.json"
        hint = AGAIN if found or (root / "scores.parquet").is_file() else "name the --out of a run"
        raise BadInput(f"{root} must be a directory with the results of a run; {what}: {hint}")
    if wrong := changed(root, found.results):
        raise sealed_json.Damaged(
            f"the files of {root} do not belong together (not as they were committed: {', '.join(wrong)}): a run ended "
            f"while it wrote its results, or a file was damaged or edited; {AGAIN}"
        )
    return found


@contextmanager
def opened(root: Path, name: str, files: Mapping[str, Any]) -> Iterator[BinaryIO]:
    """Open one of the committed files for reading, checked to be that of the commit and not of a later run."""
    try:
        file = (root / name).open("rb") if (root / name).is_file() else None
    except OSError as error:
        raise sealed_json.Damaged(f"{root / name} cannot be read ({error.strerror}): {AGAIN}") from error
    if file is None:
        raise sealed_json.Damaged(f"{root / name} is gone: {AGAIN}")
    with file:
        if hashlib.file_digest(file, "sha256").hexdigest() != files.get(name):
            raise sealed_json.Damaged(
                f"{root / name} is not the one of these results: another run wrote its own since they were loaded, or "
                "the file was damaged; load the results again, and keep results to be compared in two directories"
            )
        file.seek(0)
        yield file


def changed(root: Path, files: Mapping[str, Any]) -> list[str]:
    """The files that are gone or do not match their hash."""
    return [name for name, digest in files.items() if not _is_same(root / name, digest)]


def _is_same(path: Path, digest: Any) -> bool:
    try:
        return path.is_file() and sha256_of(path) == digest
    except OSError:
        return False


def _unfinished(state: RunState) -> str:
    why = f" ({state.reason})" if state.reason else ""
    return {
        "running": "its run has not finished, or was killed",
        "stopped": f"its run was stopped{why} before all methods were judged on any picture",
        "failed": f"its run failed{why}",
    }.get(state.state, "its results are gone")
