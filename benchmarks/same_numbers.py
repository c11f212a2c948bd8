"""The scores of the demo and of every protocol on embedded data, before and after a change.

    python benchmarks/same_numbers.py run NUMBERS      # a few pictures of each, under the reference engine
    python benchmarks/same_numbers.py compare BEFORE AFTER

Scores must agree to 1e-5 wherever both sides have the row; rows that only one side has are counted and named.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pandas as pd

METRICS = "srg,mif,lif,pointing_game,srg(occlusion=occlusion(imputer=telea))"
METHODS = "saliency,input_x_gradient,smoothgrad,integrated_gradients,grad_cam,lrp,random,edges,oracle"
EMBEDDED = ["--model", "embedded:object", "--images", "two_factor"]
CASES = {
    "demo": [*EMBEDDED, "--limit", "8", "--metrics", METRICS, "--methods", METHODS],
    "pixel_flipping": ["--protocols", "pixel_flipping", "--limit", "3"],
    "threshold_free": ["--protocols", "threshold_free", "--limit", "12"],
    "mosaics": ["--protocols", "mosaics", "--limit", "6"],
    "relative_importance": ["--protocols", "relative_importance", "--limit", "6"],
    "in_distribution": ["--protocols", "in_distribution", "--limit", "1"],
}
PLACE = ["dataset", "model", "method", "metric", "image"]
CLOSE = 1e-5


def run(where: Path) -> None:
    """Run every case; one that is there already goes on."""
    for name, words in CASES.items():
        out = where / name
        command = [sys.executable, "-m", "heatproof.cli", "run", *words, "--out", str(out)]
        status = subprocess.run([*command, "--engine", "reference", "--workers", "1", "--quiet"]).returncode
        print(f"{name}: exit status {status}", flush=True)


def compared(before: Path, after: Path) -> pd.DataFrame:
    """Every row of two runs side by side."""
    sides = [pd.read_parquet(side / "scores.parquet")[[*PLACE, "value", "status"]] for side in (before, after)]
    both = sides[0].merge(sides[1], on=PLACE, how="outer", indicator=True)
    both["moved"] = (both["value_x"] - both["value_y"]).abs()
    return both


def compare(before: Path, after: Path) -> bool:
    """Print what moved, case by case; whether nothing did."""
    same = True
    for name in CASES:
        both = compared(before / name, after / name)
        kept = both[both["_merge"] == "both"]
        moved = kept[(kept["moved"] > CLOSE) | (kept["status_x"] != kept["status_y"])]
        alone = both[both["_merge"] != "both"]
        print(
            f"{name}: {len(kept)} rows on both sides, {len(moved)} moved, largest {kept['moved'].max():.2g}; "
            f"{len(alone)} rows on one side only"
        )
        for (metric, method), rows in moved.groupby(["metric", "method"]):
            print(f"    {metric} of {method}: {len(rows)} rows, up to {rows['moved'].max():.3g}")
        for side, metric in sorted({(row["_merge"], row["metric"]) for _, row in alone.iterrows()}):
            print(f"    only {'before' if side == 'left_only' else 'after'}: {metric}")
        same &= not len(moved) and not len(alone)
    return same


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "compare"])
    parser.add_argument("paths", nargs="+", type=Path)
    given = parser.parse_args()
    if given.what == "run":
        run(given.paths[0])
    else:
        sys.exit(0 if compare(*given.paths) else 1)
