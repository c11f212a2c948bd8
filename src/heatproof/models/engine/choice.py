"""How a network is run on this machine: chosen once, remembered between runs, carried along by a run.

A choice moves results by float noise. So within a process it never changes (but for want of memory),
processes that start together settle on one (the first to write wins), and a run keeps `choices()` beside its
results and hands them to `use()` when it resumes: the same bits again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from heatproof.errors import BadInput
from heatproof.storage.cache import cache_directory, seal

log = logging.getLogger("heatproof")

Layout: TypeAlias = Literal["channels_last", "contiguous"]
Way: TypeAlias = Literal["untouched", "eager", "folded", "onnx", "compile"]


FEW = 8  # rows: of so many or fewer, every number is looked at; of more, only halves
LARGEST = 4096  # rows of a micro-batch: more is no measurement's answer, and would wait for memory for ever


@dataclass(frozen=True)
class Choice:
    """A back-end, a memory layout and a micro-batch size; `least` rows are the fewest at which, and at all numbers
    of `fewer` above it, a row was seen to get the same bits (0: at none but the size itself), so that few rows need no
    filling up. `least_itself` is the same of the network itself, which runs instead where somebody listens to it.
    `every` small number was looked at, not only halves.
    """

    backend: Way
    layout: Layout
    size: int
    least: int = 0
    least_itself: int = 0
    every: bool = False

    def __post_init__(self) -> None:
        known = self.backend in get_args(Way) and self.layout in get_args(Layout) and isinstance(self.every, bool)
        counts = (self.size, self.least, self.least_itself)
        if not known or not all(type(count) is int and 0 <= count <= LARGEST for count in counts) or not self.size:
            raise BadInput(
                f"a choice must name one of {', '.join(get_args(Way))}, one of {', '.join(get_args(Layout))} "
                f"and a size from 1 to {LARGEST}, got {asdict(self)}"
            )

    def portions(self, rows: int, itself: bool = False) -> list[int]:
        """The sizes of the micro-batches that take this many rows; only the last may have to be filled up."""
        found = [self.size] * (rows // self.size)
        rest, least = rows % self.size, self.least_itself if itself else self.least
        allowed = [size for size in fewer(self.size, self.every) if 0 < least <= size]
        while rest:
            enough = min((size for size in allowed if size >= rest), default=self.size)
            below = max((size for size in allowed if size < rest), default=0)
            if not below or rest > 0.75 * enough:  # filling up costs less than more and smaller passes
                return [*found, enough]
            found.append(below)
            rest -= below
        return found


REFERENCE = Choice("untouched", "contiguous", 8)  # of the reference engine: never measured, the same everywhere


def fewer(size: int, every: bool) -> list[int]:
    """Smaller sizes, largest first: halves of halves, and `every` number where they are few."""
    found = []
    while size % 2 == 0 and (size > FEW or not every):
        size //= 2
        found.append(size)
    return [*found, *range(min(size, FEW + 1) - 1, 0, -1)] if every else found


_made: dict[str, Choice] = {}  # in this process, by question


def choices() -> dict[str, dict[str, Any]]:
    """Every choice made or used in this process, as plain data."""
    return {question: asdict(choice) for question, choice in sorted(_made.items())}


def use(recorded: Mapping[str, Mapping[str, Any]]) -> None:
    """Run networks as recorded by `choices()`, whatever this machine's own memory says."""
    for question, fields in recorded.items():
        _made[question] = chosen(fields)


def chosen(fields: Any) -> Choice:
    """A choice from plain data, or `BadInput`: it may come from a file that anyone could edit."""
    try:
        return Choice(**fields)
    except TypeError as error:
        raise BadInput(f"{fields!r:.200} is not a recorded choice: pass what choices() gave") from error


def readable(recorded: Any) -> tuple[dict[str, Choice], list[str]]:
    """The choices in a record, and the questions whose answers make no sense and must be measured again."""
    if not isinstance(recorded, Mapping):
        return {}, ["all of it"] if recorded is not None else []
    found: dict[str, Choice] = {}
    wrong = []
    for question, fields in recorded.items():
        try:
            found[question] = chosen(fields)
        except BadInput:
            wrong.append(question)
    return found, wrong


def forget() -> None:
    """Forget the choices of this process (those on disk stay)."""
    _made.clear()


def recall(question: str, disk: bool = True) -> Choice | None:
    """The answer of this process or, where the `disk` may be asked, of an earlier one."""
    if disk and question not in _made and (found := _read(_file(question), question)):
        _made[question] = found
    return _made.get(question)


def remember(question: str, choice: Choice, keep: bool = True) -> Choice:
    """Settle a question: for the process and, if `keep`, for later ones; another's earlier answer stands."""
    if keep:
        choice = _write(_file(question), question, choice)
    _made[question] = choice
    return choice


def _file(question: str) -> Path:
    return cache_directory() / "engine" / f"{hashlib.sha256(question.encode()).hexdigest()[:24]}.json"


def _read(path: Path, question: str) -> Choice | None:
    """The answer to this very question, if its seal holds."""
    try:
        kept = json.loads(path.read_bytes())
        if kept["seal"] == _seal(question, kept["choice"]):
            return chosen(kept["choice"])
    except OSError:  # not there
        return None
    except (ValueError, TypeError, KeyError, RecursionError):  # BadInput is a ValueError
        pass
    log.warning("%s: damaged or misplaced, it is measured again", path)
    return None


def _seal(question: str, fields: Mapping[str, Any]) -> str:
    return seal(question.encode(), json.dumps(fields, sort_keys=True).encode()).hex()


def _write(path: Path, question: str, choice: Choice) -> Choice:
    """The choice that stands afterwards; a cache that cannot be written to costs a measurement, no more."""
    draft = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False) as file:
            draft = Path(file.name)
            fields = asdict(choice)
            json.dump({"question": question, "choice": fields, "seal": _seal(question, fields)}, file)
        if path.exists() and _read(path, question) is None:
            draft.replace(path)
            return choice
        path.hardlink_to(draft)  # fails if somebody was quicker: whole or not there, and one answer for all
    except FileExistsError:
        return _read(path, question) or choice
    except OSError:
        return choice
    finally:
        if draft is not None:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
    return choice
