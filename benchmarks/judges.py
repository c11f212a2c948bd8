"""Puts all metrics on trial, on the embedded data and on photos, and writes docs/judges.md and the report's own copy.

    OMP_NUM_THREADS=1 python benchmarks/judges.py --photos PHOTOS --masks MASKS --store RUN

What is measured is kept in the store: after a stop the same command goes on, and `--write-only` writes the page from
what is there. A photo has a mask of the same name.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from heatproof import data
from heatproof.audit.judges.panel import audit
from heatproof.spec import recipe
from heatproof.spec.parse import components
from heatproof.stats.judges import page
from heatproof.stats.judges.panel import Panel

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "judges.md"
CARDS = ROOT / "src" / "heatproof" / "stats" / "judges" / "measured.json"

LOCALISATION = (
    "auc_iou,relevance_mass,relevance_rank,pointing_game,auroc,average_precision,best_iou,iou_at,iou_by_area,"
    "exact_auc_iou,top_k_intersection,max_box_accuracy"
)
FAITHFULNESS = (
    "single_deletion,srg,mif,insertion,deletion,saco,faithfulness_estimate,average_drop,average_increase,average_gain,"
    "adcc,monotonicity,faithfulness_correlation,sensitivity_n,infidelity,lif,mrg,lrg,road,arcc,monotonicity_correlation"
)
OTHERS = (
    "completeness_error,sensitivity_axiom,random_logit,efficient_mprt,mprt,mprt(order=bottom_up),max_sensitivity,"
    "avg_sensitivity,local_lipschitz,coherency,relative_input_stability,relative_output_stability,"
    "relative_representation_stability,continuity,smooth_mprt(stages=2,draws=5)"
)
DESCRIPTIONS = "sparseness,complexity,mask_area"
EMBEDDED = f"{LOCALISATION},{DESCRIPTIONS},{FAITHFULNESS},{OTHERS}"
PHOTOS = f"{LOCALISATION},sparseness,single_deletion,faithfulness_estimate,average_drop,average_gain,mif,srg,saco"

LEFT_OUT = """Not on trial: `mosaic_*` and `grid_pointing` (mosaics have a truth of their own, tile by tile), `fud`
(see [claims](claims.md)), `idsds` and `f_fidelity` (their networks are trained on masked pictures, and would be again
for every disturbed model), `mcs`, `idr` and `iir` (they compare models, or pictures with and without an object)."""

LEAD = """# The judges judged

Which metric can be trusted? `heatproof audit MODEL IMAGES --metrics a,b,c` puts metrics on trial: on maps of known
quality (the truth, the truth degraded by known doses, noise, the inverse), on maps that see no model, under other seeds
and settings of metrics and methods, and after disturbances of pictures and weights. `benchmarks/judges.py` wrote this
page. `--protocols judges` puts the metrics of a run on trial in its report.

What counts as the truth depends on the question:

- *faithfulness, localisation*: the pictures' own regions (where there are none, occlusion). A model need not look at a
  region alone, so agreement with it is a yardstick for comparing metrics, and no proof.
- *robustness*: a map that stays where it is, mixed with noise that is drawn anew for every changed picture.
- *randomisation*: a map that is another one for every model and class, mixed with one that is the same for all.
- *axioms*: integrated gradients in 64 steps, mixed with noise.

"""


@dataclass(frozen=True)
class Trial:
    """One audit of this page."""

    title: str
    model: str
    images: object
    metrics: str
    limit: int
    disturbances: int


def trials(options: argparse.Namespace) -> list[Trial]:
    found = [Trial("On the embedded data", "embedded:object", "two_factor", EMBEDDED, options.limit, 1)]
    if options.photos:
        photos = data.load(str(options.photos), str(options.masks))
        found.append(Trial("On photos", "efficientnet-lite0", photos, PHOTOS, options.photo_limit, 0))
    return found


def measured(trial: Trial, store: Path, write_only: bool) -> Panel:
    """The panel of one audit; with `write_only`, of the metrics that are in the store."""
    return audit(
        trial.model,
        trial.images,  # type: ignore[arg-type]
        trial.metrics,
        limit=trial.limit,
        disturbances=trial.disturbances,
        store=store,
        stored_only=write_only,
        watch=_watch,
    )


def _waiting(trial: Trial, panel: Panel) -> str:
    """The metrics of an audit that are not in the store yet."""
    there = {card.metric for card in panel.cards}
    left = [label for one in components("metric", trial.metrics) if (label := recipe.label(one)) not in there]
    named = ", ".join(f"`{label}`" for label in left)
    return f"Not measured yet, {trial.title[0].lower()}{trial.title[1:]}: {named}.\n" if left else ""


def _watch(done: int, total: int, what: str) -> None:
    print(f"{done + 1} of {total}: {what}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=32)
    parser.add_argument("--photo-limit", type=int, default=12)
    parser.add_argument("--photos", type=Path)
    parser.add_argument("--masks", type=Path, default="")
    parser.add_argument("--store", type=Path, default=Path("runs/judges"))
    parser.add_argument("--write-only", action="store_true")
    options = parser.parse_args()
    found = [(one, measured(one, options.store, options.write_only)) for one in trials(options)]
    panels = [(one, panel) for one, panel in found if panel.cards]
    parts = [f"## {trial.title}\n\n{page.tables(panel)}" for trial, panel in panels]
    waiting = [one for trial, panel in found if (one := _waiting(trial, panel))]
    PAGE.write_text("\n".join([LEAD + page.legend(), *parts, *waiting, LEFT_OUT, ""]), encoding="utf-8")
    lines = [line for _, panel in panels for line in page.lines(panel)]
    CARDS.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
    for trial, panel in panels:
        print(f"{trial.title}: {len(panel.cards)} metrics, {panel.pictures} pictures, {panel.seconds:.0f} s")


if __name__ == "__main__":
    main()
