"""A package that brings one component of every kind, as its author would write it: files for a folder on the path."""

from __future__ import annotations

from pathlib import Path

ENTRY_POINTS = """\
[heatproof.plugins]
sunny = sunny.components
[heatproof.sections]
sunny = sunny.section
[heatproof.commands]
sunshine = sunny.command:sunshine
[heatproof.executors]
backwards = sunny.executor
"""

COMPONENTS = '''
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
import heatproof
from heatproof.occlusion.game import Occlusion


@heatproof.method
@dataclass(frozen=True)
class Sunlight:
    """Where the picture is bright."""

    signed: ClassVar[bool] = False
    normalisation: ClassVar[str] = "min_max"
    gain: float = 1.0

    def __call__(self, model, batch, /):
        return self.gain * batch.images.mean(1)


@heatproof.part
@dataclass(frozen=True)
class Window:
    """A part of a component: a share of the picture."""

    share: float = 0.5


@heatproof.metric
@dataclass(frozen=True)
class Warmth:
    """The mean heat of the map, with a curve of its hottest pixels."""

    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[str] = "description"
    axes: ClassVar[tuple[str, str]] = ("hours of sun", "warmth of the map")
    window: Window = field(default_factory=Window)

    def __call__(self, attribution, /):
        heat = attribution.maps.flatten(1).sort(1, descending=True).values
        few = heat[:, :5].double()
        count = max(1, int(self.window.share * heat.shape[1]))
        spread = heat[:, :count].std(1).double()
        curve = heatproof.Curve(torch.arange(5.0), few)
        return heatproof.Scored(heat[:, :count].mean(1), curve=curve, details={"spread": spread})


@heatproof.imputer
@dataclass(frozen=True)
class Sky:
    """Hidden pixels are blue."""

    def __call__(self, images, keep, /, seeds=None):
        blue = images.new_tensor([0.2, 0.4, 0.9]).view(1, -1, 1, 1)
        return torch.where(keep[:, None], images, blue)


@heatproof.segmenter
@dataclass(frozen=True)
class Halves:
    """The picture in two halves."""

    expected: ClassVar[int] = 2

    def __call__(self, images, /):
        labels = torch.zeros(len(images), *images.shape[2:], dtype=torch.int64, device=images.device)
        labels[..., images.shape[3] // 2 :] = 1
        return labels


@heatproof.dataset
@dataclass(frozen=True)
class Days:
    """Plain pictures, brighter from day to day."""

    count: int = 4
    name: ClassVar[str] = "days"

    def __len__(self):
        return self.count

    def ids(self):
        return tuple(f"day {i}" for i in range(self.count))

    def batch(self, indices: Sequence[int], /):
        ramp = torch.linspace(0.1, 0.5, 64).expand(3, 64, 64)
        images = torch.stack([ramp + 0.4 * i / self.count for i in indices])
        targets = torch.zeros(len(images), dtype=torch.int64)
        return heatproof.Batch(images, targets, tuple(self.ids()[i] for i in indices))

    def digest(self, indices: Sequence[int], /):
        return f"days {list(indices)}"


@heatproof.model("weather")
def weather():
    """A network that sees whether it is bright."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(48, 2))
    return heatproof.Model("weather", network, view=heatproof.View(64), classes=("bright", "dark"))


@heatproof.protocol
@dataclass(frozen=True)
class Summer:
    """Which map is warm?"""

    def studies(self, models=(), datasets=(), methods=None, **_):
        occlusion = Occlusion(Sky(), Halves())
        metrics = [Warmth(), heatproof.find("metric", "srg", occlusion=occlusion, points=2)]
        chosen = methods or [Sunlight(), "random", "edges"]
        return [heatproof.Study(models or ["weather"], datasets or [Days()], chosen, metrics, "summer")]
'''

SECTION = """
from heatproof.report.sections import section_of


@section_of("summer")
def summer(reading):
    best = reading.scores.loc[reading.scores["metric"] == "warmth", "value"].max()
    return f'<section id="summer"><h2>Summer</h2><p>It was {best:.3f} warm.</p></section>'
"""

COMMAND = '''
import typer


def sunshine(hours: int = typer.Option(3, help="How long.")) -> None:
    """Say how long the sun shone."""
    typer.echo(f"{hours} hours of sun")
'''

EXECUTOR = """
def how_many(workers, device):
    return 1


def check(study):
    pass


def close():
    pass


def spread(work, parts, workers):
    for part in reversed(list(parts)):
        yield from work(part)
"""


def install(folder: Path) -> Path:
    """Write the package and its entry points into a folder, as pip would; the folder, to be put on the path."""
    package, about = folder / "sunny", folder / "sunny-1.0.dist-info"
    package.mkdir(parents=True)
    about.mkdir()
    files = {"components": COMPONENTS, "section": SECTION, "command": COMMAND, "executor": EXECUTOR, "__init__": ""}
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: sunny\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder
