"""Whether every file of a run directory is as it was written, and what to do about those that are not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from heatproof.errors import BadInput, HeatproofError
from heatproof.report import is_intact, shown_commit
from heatproof.results import run_state
from heatproof.results.gallery import gallery_files
from heatproof.run.json_units import unit_in
from heatproof.run.parts import FOLDER, Parts
from heatproof.storage import part, sealed_json
from heatproof.storage.atomic_file import content_of, leftovers

SEALED = ("engine.json",)
PAGE = "report.html"


@dataclass(frozen=True)
class Finding:
    """One file of a run, and what is wrong with it (nothing, if it is as it was written)."""

    file: str
    problem: str = ""


def check(root: Path) -> Iterator[Finding]:
    """Look at every file of a run directory; change nothing."""
    if not root.is_dir():
        raise BadInput(f"there is no run directory {root}: name the --out of a run")
    state = None
    try:
        state = run_state.RunState.read(root)
        yield Finding(run_state.FILE, "" if state else "is not there")
    except HeatproofError as error:
        yield Finding(run_state.FILE, str(error))
    hashes = dict(state.results) if state else {}
    yield from _against(root, hashes)
    if "gallery.json" in hashes and not run_state.changed(root, {"gallery.json": hashes["gallery.json"]}):
        try:
            yield from _against(root, dict(gallery_files((root / "gallery.json").read_bytes(), root)))
        except HeatproofError as error:
            yield Finding("gallery.json", str(error))
    for name in SEALED:
        if (root / name).is_file():
            yield _sealed(root, root / name)
    yield from _parts(root)
    for path in sorted((root / "shards").rglob("*.json")):
        yield _sealed(root, path)
    for path in sorted((root / "units").rglob("*.json")):
        yield _unit(root, path)
    if (root / PAGE).is_file():
        yield _page((root / PAGE).read_bytes(), state.commit if state else "")
    for path in (*leftovers(root), *root.rglob("*.damaged")):
        yield Finding(_name(root, path), "is a leftover of a crash or of a repair, and may be deleted")


def _against(root: Path, hashes: dict[str, str]) -> Iterator[Finding]:
    wrong = run_state.changed(root, hashes)
    for name in hashes:
        yield Finding(name, "is not as it was committed" if name in wrong else "")


def _parts(root: Path) -> Iterator[Finding]:
    """Every part, by its content; and those that the footers of others miss or do not mention."""
    wrong: list[Path] = []
    unused = Parts(root, wrong.append).unused()
    for path in sorted((root / FOLDER).glob("*.parquet")):
        if not part.is_sound(path):
            yield Finding(_name(root, path), "is damaged, or was edited")
        elif path in wrong:
            yield Finding(_name(root, path), "has lost the curves or details written with it, or has no notes")
        elif path in unused:
            yield Finding(_name(root, path), "is a leftover of a crash or of a repair, and may be deleted")
        else:
            yield Finding(_name(root, path))


def _unit(root: Path, path: Path) -> Finding:
    if not path.is_file():
        return Finding(_name(root, path), "is no file")
    sound = unit_in(path.read_bytes(), path.stem) is not None
    return Finding(_name(root, path), "" if sound else "is damaged, or another unit's")


def _page(payload: bytes, commit: str) -> Finding:
    if not is_intact(payload):
        return Finding(PAGE, "is damaged, or was edited (heatproof report draws it again)")
    earlier = shown_commit(payload) not in ("", commit)
    return Finding(
        PAGE, "shows other results than those of the last run (heatproof report draws it)" if earlier else ""
    )


def _sealed(root: Path, path: Path) -> Finding:
    try:
        sealed_json.read(content_of(path), path)
    except FileNotFoundError:
        return Finding(_name(root, path), "is no file")
    except HeatproofError:
        return Finding(_name(root, path), "is damaged, or was edited")
    return Finding(_name(root, path))


def _name(root: Path, path: Path) -> str:
    return str(path.relative_to(root))
