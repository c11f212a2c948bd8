"""One flipped bit in any file of a run is noticed, healed or harmless; it never changes a number in silence."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pandas as pd
import pytest
from networks import small_cnn

from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import HeatproofError
from heatproof.report import report
from heatproof.results import Results, tables
from heatproof.run import run, verify
from heatproof.spec.study import Study, load

IGNORED = {".lock", ".engine.lock"}  # empty, or only for people


def study() -> Study:
    return Study([small_cnn()], [TwoFactor(count=4)], ["random", "edges"], ["mif(points=3)", "auc_iou"], shard=2)


def seen(root: Path) -> tuple[str, list[str]]:
    """All that a person can read off a run: its table, its curves, the gallery's pictures and maps."""
    results = Results.load(root)
    pictures = [f"{p.image} {p.target} {p.picture.tobytes().hex()[:64]}" for p in results.gallery]
    maps = [str(values.sum()) for p in results.gallery for values in p.maps.values()]
    curves = results.curves.to_csv()
    return tables.written(tables.rankings(results), "csv") + curves, pictures + maps


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("whole") / "run"
    report(run(study(), root), root / "report.html")
    return root


def flip(path: Path, rng: random.Random) -> None:
    raw = bytearray(path.read_bytes())
    at = rng.randrange(len(raw) * 8)
    raw[at // 8] ^= 1 << at % 8
    path.write_bytes(bytes(raw))


def flipped(whole: Path, tmp_path: Path, times: int, seed: int) -> dict[str, int]:
    rng = random.Random(seed)
    before = seen(whole)
    files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file() and path.name not in IGNORED)
    weights = [1 + (whole / name).stat().st_size ** 0.5 for name in files]
    met = {"noticed": 0, "harmless": 0}
    copy = tmp_path / "copy"
    shutil.copytree(whole, copy)
    for _ in range(times):
        (name,) = rng.choices(files, weights)
        flip(copy / name, rng)
        wrong = [finding.file for finding in verify.check(copy) if finding.problem]
        assert wrong, f"verify did not see a flipped bit in {name}"
        try:
            assert seen(copy) == before, f"a flipped bit in {name} changed a result in silence"
            met["harmless"] += 1
        except HeatproofError:
            met["noticed"] += 1
        if name.name == "study.json":
            with pytest.raises(HeatproofError):
                load(copy / name)
        shutil.copy(whole / name, copy / name)
    return met


def test_flipped_bits_are_noticed(whole: Path, tmp_path: Path) -> None:
    met = flipped(whole, tmp_path, 120, seed=0)
    assert min(met.values()) > 8  # of both kinds: units and the page are not what a table is read from


@pytest.mark.slow
def test_ten_thousand_flipped_bits_are_noticed(whole: Path, tmp_path: Path) -> None:
    flipped(whole, tmp_path, 10_000, seed=1)


@pytest.mark.parametrize(
    "kind",
    [
        "parts/scores*",
        "parts/curves*",
        "parts/pictures*",
        "parts/*",
        "gallery/*/*.npz",
        "gallery/*/about.json",
        "*.json",
        "*.parquet",
    ],
)
def test_a_run_heals_what_was_damaged(whole: Path, tmp_path: Path, kind: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(whole, copy)
    rng = random.Random(kind)
    for path in sorted(copy.glob(kind)):
        flip(path, rng)
    healed = run(study(), copy)
    drawn = report(healed, copy / "report.html")
    assert drawn.is_file()
    assert seen(copy) == seen(whole)
    pd.testing.assert_frame_equal(
        healed.scores.drop(columns="seconds"), Results.load(whole).scores.drop(columns="seconds"), check_exact=True
    )
    kept = [f for f in verify.check(copy) if f.problem and not f.file.endswith(".damaged")]
    assert kept == []
