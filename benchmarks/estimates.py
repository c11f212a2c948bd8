"""How good the time is that a run prints before it works, and the time left that it shows.

    python benchmarks/estimates.py                                        # the quick demo, and across protocols
    python benchmarks/estimates.py --photos FOLDER --model efficientnet-lite0

For each run: seconds expected, seconds taken, their ratio (aim: between one half and 2), and the largest rise of the
time left over the least that was shown before it (aim: at most 1.5; the last five seconds do not count).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from heatproof import demo
from heatproof.run.loop import run
from heatproof.run.pace import Pace, Progress
from heatproof.spec import from_options
from heatproof.spec.study import Study

LAST = 5.0  # seconds: what is left then is a matter of one unit
METHODS = "saliency,lrp,grad_cam,integrated_gradients(steps=16)"


@dataclass
class Shown:
    """What a display was told while the work went on."""

    begun: float | None = None
    left: list[float] = field(default_factory=list)

    def __call__(self, now: Progress) -> None:
        if now.phase != "judging":
            return
        self.begun = self.begun or time.perf_counter()
        if now.seconds_left is not None:
            self.left.append(now.seconds_left)

    @property
    def rise(self) -> float:
        """The largest rise over the least time left that was shown before."""
        worst, least = 1.0, float("inf")
        for left in self.left:
            if least < float("inf") and least > LAST:
                worst = max(worst, left / least)
            least = min(least, left)
        return worst


def studies(photos: str, model: str, limit: int) -> Iterator[tuple[str, list[Study]]]:
    """The runs, by what they are."""
    if photos:
        yield (
            "photos",
            from_options.studies(
                models=[model],
                images=[photos],
                methods=METHODS,
                metrics="srg,mif",
                protocols=None,
                changes={"limit": limit},
            ),
        )
        return
    yield "demo --quick", demo.studies(True)
    yield (
        "across protocols",
        from_options.studies(
            models=["embedded:object"],
            images=["two_factor"],
            methods=METHODS,
            metrics=None,
            protocols="pixel_flipping,threshold_free,sanity(stages=3)",
            changes={"limit": limit},
        ),
    )


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--photos", default="")
    words.add_argument("--model", default="efficientnet-lite0")
    words.add_argument("--limit", type=int, default=16)
    given = words.parse_args()
    for name, wanted in studies(given.photos, given.model, given.limit):
        shown = Shown()
        pace = Pace(shown)
        with TemporaryDirectory() as folder:
            run(wanted, Path(folder), pace=pace)
        took = time.perf_counter() - (shown.begun or time.perf_counter())
        expected = pace.expected or float("nan")
        print(
            f"{name:18} expected {expected:7.1f} s, took {took:7.1f} s, ratio {took / expected:5.2f}; "
            f"largest rise {shown.rise:4.2f} in {len(shown.left)} steps",
            flush=True,
        )


if __name__ == "__main__":
    main()
