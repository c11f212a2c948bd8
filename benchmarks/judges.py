"""Puts every metric on trial on the embedded data, and writes docs/judges.md.

OMP_NUM_THREADS=1 python benchmarks/judges.py --limit 32
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from heatproof.audit.judges import audit, page
from heatproof.audit.judges.panel import METRICS

PAGE = Path(__file__).parent.parent / "docs" / "judges.md"
LEAD = """# The judges judged

Which metric can be trusted? `heatproof audit MODEL IMAGES --metrics a,b,c` puts metrics on trial: on maps of known
quality (the truth, the truth degraded by known doses, noise, the inverse), on maps that see no model, under other seeds
and settings, and after disturbances of pictures and weights. `benchmarks/judges.py` wrote this page, with `{command}`.

## On the embedded data

"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--metrics", default=METRICS)
    options.add_argument("--limit", type=int, default=32)
    options.add_argument("--out", type=Path, default=PAGE)
    chosen = options.parse_args()
    panel = audit(
        "embedded:object",
        "two_factor",
        chosen.metrics,
        limit=chosen.limit,
        watch=lambda done, total, what: print(f"{done + 1} of {total}: {what}", file=sys.stderr, flush=True),
    )
    command = f"--metrics {chosen.metrics} --limit {chosen.limit}"
    chosen.out.write_text(LEAD.format(command=command) + page.markdown(panel), encoding="utf-8")
    print(f"{len(panel.cards)} metrics, {panel.pictures} pictures, {panel.seconds:.0f} s of processor time")


if __name__ == "__main__":
    main()
