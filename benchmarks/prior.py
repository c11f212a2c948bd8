"""How well the embedded prior inpaints: what classifiers still see when half of a picture is removed and drawn again.

    python benchmarks/prior.py [--pictures 100] [--sheet prior.png]
    python benchmarks/prior.py --twice-as-large [--pictures 200]

Blocks of 8×8 pixels and single pixels are removed at 50 %; the accuracy of the embedded scene and object classifiers is
given for the original, mean fill, and each other way of filling in. `--sheet` draws inpaintings and samples to look at.
`--twice-as-large` draws pictures of 128×128 with the prior of 64×64, and the same pictures at its own size, as a
Markdown table: what it costs that a prior serves pictures of another size.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from PIL import Image
from torch.nn.functional import avg_pool2d

from heatproof import engine, models
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.occlusion.diffusion import priors
from heatproof.occlusion.diffusion.sampler import Sampler
from heatproof.occlusion.imputers.diffusion import Diffusion
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.imputers.nearest import Nearest
from heatproof.occlusion.imputers.road import NoisyLinear
from heatproof.occlusion.imputers.telea import Telea


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=100)
    parser.add_argument("--sheet", type=Path)
    parser.add_argument("--twice-as-large", action="store_true")
    given = parser.parse_args()
    if given.twice_as_large:
        twice_as_large(given.pictures)
        return
    if given.sheet:
        sheet(given.sheet)
    count = given.pictures
    about = priors.about()
    print(
        f"{about['parameters']:,} parameters, {about['steps_done']:,} steps of {about['recipe']['batch']} pictures, "
        f"{about['minutes']} CPU minutes; loss {', '.join(f'{loss:.3f} at {at}' for at, loss in curve(about))}"
    )
    batch = TwoFactor("held_out", count).batch(range(count))
    dice = torch.Generator().manual_seed(0)
    blocks = torch.rand(count, 8, 8, generator=dice) < 0.5
    keeps = {
        "blocks": blocks.repeat_interleave(8, 1).repeat_interleave(8, 2),
        "pixels": torch.rand(count, 64, 64, generator=dice) < 0.5,
    }
    fills = {
        "mean": Mean(),
        "nearest": Nearest(),
        "telea": Telea(),
        "road": NoisyLinear(),
        "diffusion": Diffusion(),
        "diffusion from noise": Diffusion(sampler=Sampler(late_start=False)),
    }
    classifiers = {name: models.load(f"embedded:{name}") for name in ("scene", "object")}

    def accuracy(images: torch.Tensor) -> str:
        about = []
        for name, model in classifiers.items():
            right = engine.forward(model, images).argmax(1) == batch.labels[model.task]
            about.append(f"{name} {float(right.float().mean()):.3f}")
        return ", ".join(about)

    print(f"{'original':30} {accuracy(batch.images)}")
    for removed, keep in keeps.items():
        for name, imputer in fills.items():
            began = time.perf_counter()
            filled = imputer(batch.images, keep, seeds=list(range(count)))
            seconds = (time.perf_counter() - began) / count
            error = (filled - batch.images).square().mean(1)[~keep].mean()
            print(
                f"{removed + ', ' + name:30} {accuracy(filled)}, PSNR of the removed "
                f"{float(-10 * error.log10()):.1f} dB, {1000 * seconds:.0f} ms per picture"
            )


def twice_as_large(count: int) -> None:
    """The same held-out pictures at 128×128 and at 64×64; classifiers look at 64×64 pixels of both."""
    large = TwoFactor("held_out", count, size=128).batch(range(count))
    small = avg_pool2d(large.images, 2)
    dice = torch.Generator().manual_seed(0)
    blocks = torch.rand(count, 8, 8, generator=dice) < 0.5
    fine = torch.rand(count, 128, 128, generator=dice) < 0.5
    keeps = {"8×8 squares of 64": enlarge(blocks, 16), "single pixels": fine}
    classifiers = {name: models.load(f"embedded:{name}") for name in ("scene", "object")}
    print("| removed | drawn | scene | object | mean error |\n|---|---|---|---|---|")
    for removed, keep in keeps.items():
        own = blocks if removed != "single pixels" else fine[:, ::2, ::2]
        pictures = {
            "nothing": small,
            "at 64 and enlarged": avg_pool2d(Diffusion()(large.images, keep, seeds=list(range(count))), 2),
            "pictures of 64": Diffusion()(small, enlarge(own, 64 // own.shape[-1]), seeds=list(range(count))),
        }
        for name, shown in pictures.items():
            right = [
                float((engine.forward(model, shown).argmax(1) == large.labels[model.task]).double().mean())
                for model in classifiers.values()
            ]
            error = float((shown - small).abs().mean())
            print(f"| {removed} | {name} | {right[0]:.3f} | {right[1]:.3f} | {error:.4f} |")


def enlarge(keep: torch.Tensor, times: int) -> torch.Tensor:
    return keep.repeat_interleave(times, 1).repeat_interleave(times, 2)


def curve(about: dict) -> list[tuple[int, float]]:
    """The loss curve, read off at doubling steps and at the end."""
    points = about["loss_curve"]
    at, chosen = points[0][0], []
    for step, loss in points:
        if step >= at or step == points[-1][0]:
            chosen.append((step, loss))
            at = 2 * step
    return chosen


def sheet(path: Path) -> None:
    """Eight pictures: whole, half of the blocks removed and drawn again, without their object, and eight samples."""
    batch = TwoFactor("held_out", 8).batch(range(8))
    dice = torch.Generator().manual_seed(0)
    blocks = (torch.rand(8, 8, 8, generator=dice) < 0.5).repeat_interleave(8, 1).repeat_interleave(8, 2)
    rows = [batch.images]
    for keep in (blocks, ~batch.regions, torch.zeros_like(blocks)):
        painter = Diffusion(sampler=Sampler(steps=50, late_start=False))
        rows += [
            batch.images.where(keep[:, None], torch.tensor(0.5)),
            painter(batch.images, keep, seeds=list(range(8))),
        ]
    del rows[-2]  # of the samples there is nothing to show before
    grid = torch.cat([torch.cat(list(row), 2) for row in rows], 1)
    pixels = (grid.permute(1, 2, 0) * 255).round().byte().numpy()
    Image.fromarray(pixels).resize((grid.shape[2] * 2, grid.shape[1] * 2), Image.Resampling.NEAREST).save(path)


if __name__ == "__main__":
    main()
