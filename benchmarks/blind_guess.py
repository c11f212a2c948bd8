"""Which transformer methods beat a blind guess: SRG and AUROC on the embedded transformers, into docs/transformers.md.

    python benchmarks/blind_guess.py [--runs folder] [--only scene_vit] [--out docs/transformers.md]

A run into a folder that has results goes on with them, so that drawing the page again costs nothing.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path
from typing import Any

import torch

from heatproof import Results, Study, models, run
from heatproof.models import embedded

METHODS = (
    "attention_rollout",
    "generic_attention",
    "attention_gradient_cam",
    "transformer_lrp",
    "attn_lrp",
    "attn_lrp(composite=cp_lrp)",
    "libra_grad",
    "libra_grad(of=integrated_gradients(steps=16))",
    "legrad",
    "grad_cam",
    "input_x_gradient",
    "integrated_gradients(steps=16)",
)
CONTROLS = ("random", "edges", "centre", "constant")
STANDINGS = {
    "clear": "beats every blind control",
    "level": "not separated from some blind control",
    "beaten": "**a blind control beats it**",
    "control": "control",
}
HEADINGS = {"srg": "SRG (faithfulness)", "auroc": "AUROC on the object (localisation)"}
MODELS = {"scene_vit": ("srg",), "object_vit": ("srg", "auroc")}  # the region of a scene is the whole picture
COUNTS = {"scene_vit": 100, "object_vit": 32}


def judged(name: str, folder: Path) -> Results:
    study = Study(
        models=[models.load(f"embedded:{name}")],
        datasets=[f"two_factor(count={COUNTS[name]})"],
        methods=[*METHODS, *CONTROLS],
        metrics=list(MODELS[name]),
        target="label",
    )
    return run(study, folder / name)


def table(results: Results, metric: str) -> list[str]:
    """Methods from best to worst: the mean with its interval, and how it stands against the blind controls."""
    rows: list[dict[str, Any]] = results.ranking(metric).table.to_dict("records")
    lines = [f"| method | mean {metric} | 95 % interval | against blind controls |", "|---|---|---|---|"]
    for row in rows:
        span = f"{row['low']:.3f} … {row['high']:.3f}"
        lines.append(f"| `{row['method']}` | {row['mean']:.3f} | {span} | {STANDINGS[row['against_blind']]} |")
    return lines


def sentence(results: Results, metric: str) -> str:
    """Which methods do not beat every blind control."""
    found = results.ranking(metric).table
    contest = found[~found["control"]]
    short = contest[contest["against_blind"] != "clear"]["method"]
    if not len(short):
        return f"All {len(contest)} methods beat every blind control."
    names = ", ".join(f"`{name}`" for name in short)
    return f"{len(contest) - len(short)} of {len(contest)} methods beat every blind control; {names} did not."


def page(found: dict[str, Results]) -> str:
    lines = [
        "# Do transformer methods beat a blind guess?",
        "",
        "Measured by `benchmarks/blind_guess.py` on embedded pictures, for the true class. Blind controls are noise,",
        "edges, a bump in the centre and a constant: maps that know the picture at most, and never the network. A",
        "difference counts if the tests of the page say so ([statistics.md](statistics.md)). The networks are small,",
        "and what holds for them need not hold for yours: `heatproof judge` measures there.",
    ]
    for name, results in found.items():
        record = embedded.about(name)
        lines += ["", f"## `embedded:{name}`", "", f"{DESCRIPTIONS[name]} Accuracy on unseen pictures:"]
        lines[-1] += f" {100 * record['accuracy']['composite']:.1f} %. Maps of {COUNTS[name]} pictures are judged."
        for metric in MODELS[name]:
            lines += ["", f"### {HEADINGS[metric]}", "", sentence(results, metric), "", *table(results, metric)]
    return "\n".join([*lines, ""])


DESCRIPTIONS = {
    "scene_vit": "A transformer on patches of 8×8 pixels that names the scene, which fills the picture.",
    "object_vit": "A transformer behind the first two stages of `embedded:object` that names the object.",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--only", choices=MODELS)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "transformers.md")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    folder = given.runs or Path(tempfile.mkdtemp())
    found = {name: judged(name, folder) for name in MODELS if given.only in (None, name)}
    given.out.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
