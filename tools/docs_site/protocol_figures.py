"""One figure per protocol, from the embedded pictures and models: what is done to a picture, and what is read off."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from heatproof import engine, models, registry
from heatproof.attribute import attribute
from heatproof.data.mosaic import Mosaic
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.metrics._support.randomised import layers_in_order, randomised, stages
from heatproof.occlusion.game import impute
from heatproof.report.heat import overlay, shown
from heatproof.types import Attribution, Batch, Model

SIDE = 150
INK, SOFT, WARM, COLD = "#1c1b1a", "#6b6862", "#bb2100", "#2067d1"


def figures() -> dict[str, bytes]:
    """(protocol, SVG) of every protocol but `all`."""
    return {name: draw() for name, draw in DRAWN.items()}


@functools.cache
def example(count: int = 1) -> tuple[Model, Batch]:
    """The embedded object model and its first pictures, explained as what the model sees."""
    model = models.load("embedded:object")
    batch = TwoFactor(count=count).batch(range(count))
    return model, batch.aimed(engine.forward(model, batch.images).argmax(1))


def heat(model: Model, batch: Batch, name: str, **fields: Any) -> Tensor:
    """The maps of a method, by name."""
    return attribute(model, batch, registry.find("method", name, **fields)).maps


def pixels(image: Tensor) -> Any:
    """A picture as the report draws it."""
    return (image.permute(1, 2, 0).clamp(0, 1).numpy() * 255).round().astype(np.uint8)


def row(pictures: Sequence[tuple[str, Any]], extra: float = 0.0) -> tuple[Figure, list[Any]]:
    """A figure with labelled pictures side by side, and room on the right."""
    width = 1.25 * len(pictures) + extra
    figure = Figure(figsize=(width, 1.65))
    for place, (title, picture) in enumerate(pictures):
        axes = figure.add_axes((1.25 * place / width, 0.0, 1.18 / width, 0.78))
        axes.imshow(picture, interpolation="nearest")
        axes.set_title(title, fontsize=7.5, color=INK, pad=3)
        axes.axis("off")
    room = []
    if extra:
        room = [figure.add_axes(((1.25 * len(pictures) + 0.5) / width, 0.22, (extra - 0.6) / width, 0.6))]
        for side in ("top", "right"):
            room[0].spines[side].set_visible(False)
        room[0].tick_params(labelsize=6, colors=SOFT)
    return figure, room


def encoded(figure: Figure) -> bytes:
    """SVG with text as text; white behind it, so that it reads in the dark, too."""
    out = io.BytesIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "heatproof"}):
        figure.savefig(out, format="svg", facecolor="white", metadata={"Date": None})
    return out.getvalue()


def pixel_flipping() -> bytes:
    """Segments go, the most important first; the curve is the model's probability."""
    model, batch = example()
    metrics = {name: registry.find("metric", name) for name in ("mif", "lif")}
    maps = heat(model, batch, "lrp")
    curves = {name: metric(Attribution(model, batch, None, maps)).curve for name, metric in metrics.items()}
    order = torch.nn.functional.avg_pool2d(maps[:, None], 8)[0, 0].flatten().argsort(descending=True)
    frames = []
    for share in (0.1, 0.3, 0.6):
        hidden = torch.zeros(64, dtype=torch.bool)
        hidden[order[: round(64 * share)]] = True
        keep = ~hidden.view(1, 8, 8).repeat_interleave(8, 1).repeat_interleave(8, 2)
        filled = impute(registry.find("imputer", "mean"), batch.images, keep)
        frames.append((f"{share:.0%} hidden", pixels(filled[0])))
    figure, (axes,) = row(
        [
            ("picture", pixels(batch.images[0])),
            ("heatmap", overlay(pixels(batch.images[0]), maps[0].numpy(), None, SIDE)),
            *frames,
        ],
        2.2,
    )
    for name, colour in (("mif", WARM), ("lif", COLD)):
        curve = curves[name]
        x, y = (each if each.ndim == 1 else each[0] for each in (curve.x, curve.y))
        axes.plot(x, y, color=colour, linewidth=1.4)
        axes.annotate(
            f"{'most' if name == 'mif' else 'least'} important first",
            (0.66, 0.72 if name == "lif" else 0.14),
            xycoords="axes fraction",
            ha="right",
            fontsize=6,
            color=colour,
        )
    axes.set_xlabel("share of segments hidden", fontsize=6.5, color=INK)
    axes.set_ylabel("probability", fontsize=6.5, color=INK)
    axes.set_ylim(0, 1.02)
    return encoded(figure)


def threshold_free() -> bytes:
    """The map's parts above three thresholds, and the IoU at all of them."""
    model, batch = example()
    assert batch.regions is not None
    maps = heat(model, batch, "grad_cam").clamp(min=0)
    scaled = maps[0] / maps[0].max()
    region = batch.regions[0]
    thresholds = np.linspace(0.05, 0.95, 19)
    parts = [scaled > level for level in thresholds]
    overlap = [float((part & region).sum() / (part | region).sum()) for part in parts]
    frames = [
        (f"above {level}", overlay(pixels(batch.images[0]), (scaled > level).float().numpy(), region.numpy(), SIDE))
        for level in (0.2, 0.5, 0.8)
    ]
    first = ("picture, object", shown(pixels(batch.images[0]), region.numpy(), SIDE))
    figure, (axes,) = row(
        [first, ("heatmap", overlay(pixels(batch.images[0]), maps[0].numpy(), region.numpy(), SIDE)), *frames], 2.2
    )
    axes.plot(thresholds, overlap, color=WARM, linewidth=1.4)
    axes.fill_between(thresholds, overlap, color=WARM, alpha=0.15, linewidth=0)
    axes.set_xlabel("threshold", fontsize=6.5, color=INK)
    axes.set_ylabel("IoU with the object", fontsize=6.5, color=INK)
    axes.set_ylim(0, max(overlap) * 1.2)
    return encoded(figure)


def mosaics() -> bytes:
    """Four pictures in one: heat for the target belongs on its tiles."""
    model = models.load("embedded:object")
    data = Mosaic(task="object").fitted(model)
    batch = data.batch((0, 1))
    aimed = batch.aimed(batch.labels["object"])
    frames = []
    for place in range(2):
        one = aimed.select([place])
        region = None if one.regions is None else one.regions[0].numpy()
        frames.append(("mosaic, target tiles", shown(pixels(one.images[0]), region, SIDE)))
        for name in ("lrp", "grad_cam"):
            frames.append((name, overlay(pixels(one.images[0]), heat(model, one, name)[0].numpy(), region, SIDE)))
    return encoded(row(frames)[0])


def relative_importance() -> bytes:
    """The same picture for two models, and its twin without the object."""
    _, batch = example()
    assert batch.twins is not None
    frames = [("picture", pixels(batch.images[0])), ("its twin without the object", pixels(batch.twins[0]))]
    for name in ("object", "scene"):
        model = models.load(f"embedded:{name}")
        aimed = batch.aimed(engine.forward(model, batch.images).argmax(1))
        region = None if batch.regions is None else batch.regions[0].numpy()
        frames.append(
            (
                f"Grad-CAM, {name} model",
                overlay(pixels(batch.images[0]), heat(model, aimed, "grad_cam")[0].numpy(), region, SIDE),
            )
        )
    return encoded(row(frames)[0])


def in_distribution() -> bytes:
    """What is not among the kept pixels is drawn again by a diffusion model, or painted over."""
    model, batch = example()
    maps = heat(model, batch, "lrp")[0]
    frames = [
        ("picture", pixels(batch.images[0])),
        ("heatmap", overlay(pixels(batch.images[0]), maps.numpy(), None, SIDE)),
    ]
    blocks = torch.nn.functional.avg_pool2d(maps[None, None], 8)[0, 0]
    keep = (blocks >= blocks.flatten().kthvalue(45).values).repeat_interleave(8, 0).repeat_interleave(8, 1)[None]
    masked = batch.images[0] * keep + 0.93 * ~keep
    frames.append(("a third is kept", pixels(masked)))
    for title, imputer, seed in (
        ("painted over", "mean", 0),
        ("drawn again", "diffusion", 0),
        ("and again", "diffusion", 1),
    ):
        filled = impute(registry.find("imputer", imputer), batch.images, keep, seeds=[seed])
        frames.append((title, pixels(filled[0])))
    return encoded(row(frames)[0])


def sanity() -> bytes:
    """The map as the weights are drawn anew, from the answer down."""
    model, batch = example()
    found = stages(layers_in_order(model, batch.images), "top_down", 4)
    frames = [("picture", pixels(batch.images[0]))]
    for place, names in enumerate([(), *found]):
        network = model if not names else randomised(model, names)
        title = "learnt weights" if not names else f"{place} of {len(found)} parts random"
        frames.append(
            (title, overlay(pixels(batch.images[0]), heat(network, batch, "grad_cam")[0].numpy(), None, SIDE))
        )
    return encoded(row(frames)[0])


def robustness() -> bytes:
    """The same map for copies with a little noise."""
    model, batch = example()
    frames = []
    dice = torch.Generator().manual_seed(0)
    for amount in (0.0, 0.05, 0.15):
        noisy = batch.showing((batch.images + amount * torch.randn(batch.images.shape, generator=dice)).clamp(0, 1))
        frames.append(("picture" if not amount else f"noise of {amount}", pixels(noisy.images[0])))
        frames.append(
            ("saliency", overlay(pixels(noisy.images[0]), heat(model, noisy, "saliency")[0].numpy(), None, SIDE))
        )
    return encoded(row(frames)[0])


DRAWN: dict[str, Callable[[], bytes]] = {
    "pixel_flipping": pixel_flipping,
    "threshold_free": threshold_free,
    "mosaics": mosaics,
    "relative_importance": relative_importance,
    "in_distribution": in_distribution,
    "sanity": sanity,
    "robustness": robustness,
}
