"""How well the embedded prior inpaints: what classifiers still see when half of a picture is removed and
drawn again.

    python benchmarks/prior.py [--pictures 100]

Blocks of 8×8 pixels and single pixels are removed at 50 %; the accuracy of the embedded scene and object
classifiers is
given for the original, mean fill, and each other way of filling in.
"""

from __future__ import annotations

import argparse
import time

import torch

from heatproof import models
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.models import engine
from heatproof.occlusion.imputers.diffusion import Diffusion
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.imputers.road import NoisyLinear
from heatproof.occlusion.imputers.telea import Telea


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--pictures", type=int, default=100)
    count = asked.parse_args().pictures
    batch = TwoFactor("held_out", count).batch(range(count))
    dice = torch.Generator().manual_seed(0)
    blocks = torch.rand(count, 8, 8, generator=dice) < 0.5
    keeps = {
        "blocks": blocks.repeat_interleave(8, 1).repeat_interleave(8, 2),
        "pixels": torch.rand(count, 64, 64, generator=dice) < 0.5,
    }
    fills = {"mean": Mean(), "telea": Telea(), "road": NoisyLinear(), "diffusion": Diffusion()}
    classifiers = {name: models.load(f"embedded:{name}") for name in ("scene", "object")}

    def accuracy(images: torch.Tensor) -> str:
        told = []
        for name, model in classifiers.items():
            right = engine.forward(model, images).argmax(1) == batch.labels[model.task]
            told.append(f"{name} {float(right.float().mean()):.3f}")
        return ", ".join(told)

    print(f"{'original':24} {accuracy(batch.images)}")
    for removed, keep in keeps.items():
        for name, imputer in fills.items():
            began = time.perf_counter()
            filled = imputer(batch.images, keep, seeds=list(range(count)))
            seconds = (time.perf_counter() - began) / count
            error = (filled - batch.images).square().mean(1)[~keep].mean()
            print(
                f"{removed + ', ' + name:24} {accuracy(filled)}, PSNR of the removed "
                f"{float(-10 * error.log10()):.1f} dB, {1000 * seconds:.0f} ms per picture"
            )


if __name__ == "__main__":
    main()
