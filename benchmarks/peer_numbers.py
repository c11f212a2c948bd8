"""The same maps judged by pytorch-grad-cam, captum and heatproof: a table of docs/coming-from-quantus.md.

python benchmarks/peer_numbers.py --write
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from quantus_numbers import PAGE, ROOT, filled
from quantus_numbers import stage as common

from heatproof.metrics._support.normalisation import normalise
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.spec.parse import parse
from heatproof.types import Attribution, Batch, Model

STORED = ROOT / "benchmarks" / "peer_numbers.json"
SURE = 20.0
CAM = "pytorch-grad-cam"
SHARES = "(0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9)"


@dataclass(frozen=True)
class Pair:
    """The same question there and here."""

    package: str
    there: str
    here: str
    compute: Callable[[], Any]


def stage() -> tuple[Model, Batch, torch.Tensor]:
    """The stage of the other table, with a network that is sure of its answers: confidence has room to fall."""
    model, batch, maps = common()
    with torch.no_grad():
        for values in model.network[-1].parameters():  # type: ignore[index]
            values.mul_(SURE)
    return model, batch, maps * SURE  # the maps are gradients of what was multiplied


def _masks() -> tuple[Model, Batch, np.ndarray[Any, Any], list[Callable[[torch.Tensor], torch.Tensor]]]:
    """The stage, with maps scaled to masks in [0, 1], and targets that read a class's probability."""
    model, batch, maps = stage()
    maps = maps * _signs(batch)
    targets = [lambda output, place=int(one): output.softmax(-1)[place] for one in batch.targets]
    return model, batch, normalise(maps, "min_max").detach().numpy(), targets  # type: ignore[return-value]


def _signs(batch: Batch) -> torch.Tensor:
    """Every other map is turned round: the masks of some pictures lower the confidence, those of others raise it."""
    return torch.tensor([1.0, -1.0]).repeat(len(batch) // 2)[:, None, None]


def _cam(name: str, *settings: Any) -> Callable[[], Any]:
    def compute() -> Any:
        import_torchvision("comparing with pytorch-grad-cam")
        from pytorch_grad_cam.metrics import cam_mult_image, road

        torch.manual_seed(0)
        model, batch, masks, targets = _masks()
        metric = getattr(cam_mult_image if hasattr(cam_mult_image, name) else road, name)(*settings)
        return metric(batch.images, masks, targets, model.network)

    return compute


def _explained(pictures: Any) -> tuple[torch.Tensor]:
    """Input × gradient of captum's pictures, of which it may send several copies of each."""
    shown = pictures[0] if isinstance(pictures, tuple) else pictures
    model, batch, _ = stage()
    targets = batch.targets.repeat_interleave(len(shown) // len(batch))
    asked = Batch(shown.detach().clamp(0, 1), targets, tuple(map(str, range(len(shown)))))
    maps: torch.Tensor = parse("method", "input_x_gradient(input=pixels)")(model, asked)
    return (maps[:, None],)


def _sensitivity() -> Any:
    from captum.metrics import sensitivity_max

    torch.manual_seed(0)
    _, batch, _ = stage()
    return sensitivity_max(_explained, batch.images, perturb_radius=0.05, n_perturb_samples=50).numpy()


def _infidelity() -> Any:
    from captum.metrics import infidelity

    torch.manual_seed(0)
    model, batch, maps = stage()

    def disturbed(inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        moved = (0.2 * torch.randn_like(inputs)).clamp(0, 1)
        return inputs - moved, moved

    found = infidelity(
        model.network,
        disturbed,
        batch.images,
        maps[:, None],
        target=batch.targets,
        n_perturb_samples=2000,
        normalize=True,
    )
    return found.detach().numpy()


def pairs() -> dict[str, Pair]:
    """What is compared."""
    cam, shares = CAM, "[10, 20, 30, 40, 50, 60, 70, 80, 90]"
    return {
        "average drop": Pair(
            cam,
            "DropInConfidence()",
            "DropInConfidence(imputer=constant)",
            _cam("DropInConfidence"),
        ),
        "average increase": Pair(
            cam,
            "IncreaseInConfidence()",
            "average_increase(imputer=constant,mask=min_max)",
            _cam("IncreaseInConfidence"),
        ),
        "ROAD": Pair(cam, f"ROADCombined({shares})", f"road(shares={SHARES})", _cam("ROADCombined")),
        "max sensitivity": Pair(
            "captum",
            "sensitivity_max(explain, x, perturb_radius=0.05, n_perturb_samples=50)",
            "sensitivity_max(draws=50,radius=0.05)",
            _sensitivity,
        ),
        "infidelity": Pair(
            "captum",
            "infidelity(network, darkened, x, maps, target=y, n_perturb_samples=2000, normalize=True)",
            "infidelity(disturbance=gaussian,count=2000,deviation=0.2)",
            _infidelity,
        ),
    }


def ours(pair: Pair) -> list[float]:
    """heatproof's scores of the six pictures."""
    return [round(float(one), 4) for one in judged(pair).values]


def judged(pair: Pair) -> Any:
    """What heatproof says, with its details."""
    model, batch, maps = stage()
    if pair.package == CAM:
        maps = maps * _signs(batch)
    method = parse("method", "input_x_gradient(input=pixels)")
    return parse("metric", pair.here)(Attribution(model, batch, method, maps))


def measured() -> dict[str, dict[str, Any]]:
    """Both answers for every pair."""
    return {
        name: {
            "package": pair.package,
            "there": pair.there,
            "here": pair.here,
            "theirs": [round(float(one), 4) for one in np.asarray(pair.compute()).ravel()],
            "heatproof": ours(pair),
        }
        for name, pair in pairs().items()
    }


def table(found: dict[str, dict[str, Any]]) -> str:
    """The page's table."""
    lines = ["| metric | there | heatproof | mean there | mean here |", "|---|---|---|---|---|"]
    for name, row in found.items():
        there, here = np.mean(row["theirs"]), np.mean(row["heatproof"])
        lines.append(f"| {name} | {row['package']}: `{row['there']}` | `{row['here']}` | {there:.4f} | {here:.4f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the numbers and the page's table")
    found = measured()
    print(table(found))
    if parser.parse_args().write:
        STORED.write_text(json.dumps(found, indent=1) + "\n")
        PAGE.write_text(filled(PAGE.read_text(), "peers", table(found)))


if __name__ == "__main__":
    main()
