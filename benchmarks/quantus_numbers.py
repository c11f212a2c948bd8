"""The same maps judged by Quantus and by heatproof: the table of docs/coming-from-quantus.md.

    python benchmarks/quantus_numbers.py --write

Quantus is no requirement of heatproof: `pip install --no-deps quantus` into an environment of its own, or on the path.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from heatproof import registry
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.spec import recipe
from heatproof.spec.parse import parse
from heatproof.types import Attribution, Batch, Model

ROOT = Path(__file__).parents[1]
PAGE, STORED = ROOT / "docs" / "coming-from-quantus.md", ROOT / "benchmarks" / "quantus_numbers.json"
SIDE = 16


def stage() -> tuple[Model, Batch, torch.Tensor]:
    """A seeded network without normalisation, six grey pictures with square regions, and its input × gradient."""
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(6 * 64, 5)
    ).eval()
    images = torch.rand(6, 1, SIDE, SIDE)
    images[:, :, 0, 0] = 0.0  # Quantus takes an image's own darkest value for black
    regions = torch.zeros(6, SIDE, SIDE, dtype=torch.bool)
    regions[:, 4:11, 5:12] = True
    targets = network(images).argmax(1)
    batch = Batch(images, targets, tuple(f"picture {i}" for i in range(6)), regions)
    model = Model("seeded", network)
    return model, batch, parse("method", "input_x_gradient(input=pixels)")(model, batch)


# What one types there and here; the call there is Python in which `quantus` is imported and `x` holds what it needs.
PAIRS: dict[str, tuple[str, str]] = {
    "sparseness": ("quantus.Sparseness(abs=True, normalise=False)", "Sparseness"),
    "complexity": ("quantus.Complexity(abs=True, normalise=False)", "Complexity"),
    "max sensitivity": (
        "quantus.MaxSensitivity(nr_samples=50, lower_bound=0.05, abs=False, normalise=False)",
        "MaxSensitivity(draws=50,radius=0.05)",
    ),
    "average sensitivity": (
        "quantus.AvgSensitivity(nr_samples=50, lower_bound=0.05, abs=False, normalise=False)",
        "AvgSensitivity(draws=50,radius=0.05)",
    ),
    "local Lipschitz": (
        "quantus.LocalLipschitzEstimate(nr_samples=50, perturb_std=0.05, abs=False, normalise=False)",
        "LocalLipschitzEstimate(draws=50,radius=0.05)",
    ),
    "faithfulness correlation": (
        "quantus.FaithfulnessCorrelation(nr_runs=2000, subset_size=26, perturb_baseline='black', abs=False, "
        "normalise=False, return_aggregate=False)",
        "FaithfulnessCorrelation(sets=2000,size=0.1,occlusion=Occlusion(imputer=constant,segmenter=pixels,draws=1))",
    ),
    "pointing game": ("quantus.PointingGame(abs=False, normalise=False)", "PointingGame"),
    "relevance rank": ("quantus.RelevanceRankAccuracy(abs=False, normalise=False)", "RelevanceRankAccuracy"),
    "relevance mass": (
        "quantus.RelevanceMassAccuracy(abs=True, normalise=False)",
        "RelevanceMassAccuracy(sign=absolute)",
    ),
    "AUC": ("quantus.AUC(abs=False, normalise=False)", "AUC"),
    "top-k": ("quantus.TopKIntersection(k=20, abs=False, normalise=False)", "TopKIntersection(k=0.078125)"),
    "pixel flipping": (
        "quantus.PixelFlipping(features_in_step=8, perturb_baseline='black', abs=False, normalise=False)",
        "PixelFlipping(points=33,readout=logit)",
    ),
    "MPRT": (
        "quantus.MPRT(layer_order='top_down', similarity_func=quantus.similarity_func.correlation_spearman, "
        "return_average_correlation=True, abs=True, normalise=False)",
        "ModelParameterRandomisation",
    ),
}


def ours(call: str) -> list[float]:
    """heatproof's scores of the six pictures."""
    model, batch, maps = stage()
    method = parse("method", "input_x_gradient(input=pixels)")
    answer = parse("metric", call)(Attribution(model, batch, method, maps))
    return [round(float(value), 4) for value in getattr(answer, "values", answer)]


def theirs(call: str) -> list[float]:
    """Quantus's scores of the same; a curve counts by its mean height."""
    import quantus

    model, batch, maps = stage()
    method = parse("method", "input_x_gradient(input=pixels)")

    def explain(model: nn.Module, inputs: Any, targets: Any, **_: Any) -> Any:
        pictures = torch.as_tensor(np.asarray(inputs), dtype=torch.float32).clamp(0, 1)
        count = len(pictures)
        requested = Batch(pictures, torch.as_tensor(np.asarray(targets)).long(), tuple(map(str, range(count))))
        return method(Model("theirs", model), requested).detach().numpy()[:, None]

    np.random.seed(0)  # noqa: NPY002  it draws from the global state
    torch.manual_seed(0)
    metric = eval(call, {"quantus": quantus})
    scores = metric(
        model=model.network,
        x_batch=batch.images.numpy(),
        y_batch=batch.targets.numpy(),
        a_batch=maps.detach().numpy()[:, None],
        s_batch=None if batch.regions is None else batch.regions.numpy()[:, None],
        explain_func=explain,
        softmax=False,
        device="cpu",
    )
    curves = [np.asarray(one, dtype=float).ravel() for one in scores]
    return [round(float(one.mean()), 4) for one in curves]


def measured() -> dict[str, dict[str, Any]]:
    """Both answers for every pair, or why there is none there."""
    import_torchvision("comparing with Quantus")
    import quantus

    found: dict[str, dict[str, Any]] = {}
    for name, (there, here) in PAIRS.items():
        row: dict[str, Any] = {"there": there, "here": here, "heatproof": ours(here)}
        found[name] = row | _tried(lambda call=there: theirs(call))  # type: ignore[misc]
    return {"quantus": {"version": quantus.__version__}, **found}


def _tried(call: Callable[[], list[float]]) -> dict[str, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {"quantus": call()}
    except Exception as error:
        return {"fails": f"{type(error).__name__}: {str(error)[:120]}"}


def table(found: dict[str, dict[str, Any]]) -> str:
    """The page's table."""
    lines = ["| metric | Quantus | heatproof | mean there | mean here |", "|---|---|---|---|---|"]
    for name, row in found.items():
        if "here" in row:
            there = f"{np.mean(row['quantus']):.4f}" if "quantus" in row else row["fails"].replace("|", "/")
            here = np.mean(row["heatproof"])
            call = row["there"].replace("quantus.", "")
            lines.append(f"| {name} | `{call}` | `{row['here']}` | {there} | {here:.4f} |")
    return "\n".join(lines)


def names() -> str:
    """The page's table of other packages' names."""
    lines = ["| there | here | where numbers differ |", "|---|---|---|"]
    for name, entry in registry.aliases("metric").items():
        whose, _, what = entry.about.partition(". ")
        component = recipe.label(registry.find("metric", name))
        lines.append(f"| `{name}` ({whose}) | `{component}` | {what} |")
    return "\n".join(lines)


def filled(page: str, mark: str, text: str) -> str:
    """The page with this text between a mark and its end."""
    begin, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    before, after = page[: page.index(begin)], page[page.index(end) :]
    return f"{before}{begin}\n{text}\n{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the numbers and the page's table")
    found = measured()
    print(table(found))
    if parser.parse_args().write:
        STORED.write_text(json.dumps(found, indent=1) + "\n")
        PAGE.write_text(filled(filled(PAGE.read_text(), "numbers", table(found)), "names", names()))


if __name__ == "__main__":
    main()
