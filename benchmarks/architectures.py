"""Which methods work on which architectures: small random copies of real ones, into docs/architectures.md.

    python benchmarks/architectures.py [--methods a,b] [--only vit,swin] [--kept rows.json] [--out page.md]

Every method runs on three pictures, together and one by one. `works` means: finite maps, equal to 1e-5 of their largest
value, or to 1e-6 of the largest logit, however pictures are batched. Otherwise the reason it gives is printed below the
table. Any other error is printed, nothing is written, and the exit status is 1. `--kept` keeps finished rows, from
which the next call goes on.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from heatproof import engine, registry
from heatproof.attribute import attribute
from heatproof.errors import NotApplicable
from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.occlusion.game import Occlusion
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.stability import is_unstable
from heatproof.types import Batch, Model

CLASSES, CLOSE, NOISE, NOISY = 5, 1e-5, 1e-6, 1e-3
ERROR, MOVED = "error: ", "own gradient moves"
SIDE = 64
HIDDEN = ("random", "edges", "centre", "constant", "mean_region", "oracle", "inverted", "random_weights", "precomputed")
CHEAP: dict[str, dict[str, Any]] = {
    "ablation_cam": {"limit": 4},
    "agi": {"classes": 2, "steps": 2},
    "attexplore": {"steps": 2, "draws": 2},
    "blur_ig": {"steps": 3},
    "boundary_ig": {"steps": 2, "attack_steps": 3},
    "deep_lift_shap": {"draws": 2},
    "expected_gradients": {"draws": 2},
    "extremal_perturbation": {"steps": 3, "cells": 6},
    "gradient_shap": {"draws": 2},
    "guided_ig": {"steps": 3},
    "hsic": {"samples": 20},
    "idgi": {"steps": 3},
    "ig2": {"steps": 3, "draws": 2},
    "ig_smoothgrad": {"steps": 2, "draws": 2},
    "integrated_gradients": {"steps": 3},
    "isa": {"rounds": 2, "steps": 2},
    "kernel_shap": {"samples": 60},
    "lime": {"samples": 30},
    "lima": {"occlusion": Occlusion(segmenter=Grid(2))},
    "local_attribution": {"classes": 2, "steps": 2},
    "mfaba": {"steps": 2},
    "rise": {"masks": 20},
    "score_cam": {"limit": 4},
    "shapley": {"permutations": 2},
    "smoothgrad": {"draws": 2},
    "sobol": {"samples": 2, "cells": 4},
    "xrai": {"steps": 2},
    "occlusion": {"positions": 7},
}


class LogitsOf(nn.Module):
    """A classifier of transformers, logits alone."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, images: Tensor) -> Tensor:
        return self.inner(pixel_values=images).logits  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Architecture:
    """A small random copy of an architecture."""

    name: str
    make: Callable[[], nn.Module]
    side: int = SIDE


def timm_ones() -> Iterator[Architecture]:
    vit = {"img_size": SIDE, "patch_size": 16, "embed_dim": 48, "depth": 2, "num_heads": 3}
    stages = {"depths": (1, 1, 1, 1)}
    narrow = {"embed_dim": (32, 32, 32, 32), "stem_width": (8, 16), **stages}

    def made(name: str, **sizes: Any) -> Callable[[], nn.Module]:
        def make() -> nn.Module:
            import timm

            return timm.create_model(name, num_classes=CLASSES, **sizes)

        return make

    def mixer() -> nn.Module:
        from timm.models.mlp_mixer import MlpMixer

        return MlpMixer(num_classes=CLASSES, img_size=SIDE, patch_size=16, num_blocks=2, embed_dim=48)

    for name in (
        "vit_tiny_patch16_224",
        "vit_base_patch16_siglip_224",
        "vit_medium_patch16_reg4_gap_256",
        "vit_base_patch16_clip_224",
        "deit_tiny_distilled_patch16_224",
        "deit3_small_patch16_224",
        "beit_base_patch16_224",
        "eva02_tiny_patch14_224",
        "vit_small_patch14_reg4_dinov2",
    ):
        yield Architecture(f"timm {name}", made(name, **vit))
    yield Architecture("timm vit, average of patches", made("vit_tiny_patch16_224", global_pool="avg", **vit))
    yield Architecture(
        "timm vit, 64×32 patches of 16×8", made("vit_tiny_patch16_224", **{**vit, "patch_size": (16, 8)})
    )
    yield Architecture("timm cait_xxs24_224", made("cait_xxs24_224", **vit))
    yield Architecture("timm xcit_nano_12_p16_224", made("xcit_nano_12_p16_224", img_size=SIDE, depth=2, embed_dim=48))
    swin = {"img_size": SIDE, "patch_size": 4, "embed_dim": 24, "num_heads": (2, 2, 2, 2), **stages}
    yield Architecture("timm swin_tiny_patch4_window7_224", made("swin_tiny_patch4_window7_224", window_size=4, **swin))
    yield Architecture("timm swinv2_tiny_window8_256", made("swinv2_tiny_window8_256", window_size=4, **swin))
    yield Architecture("timm mlp mixer", mixer)
    yield Architecture(
        "timm pvt_v2_b0", made("pvt_v2_b0", embed_dims=(8, 16, 24, 32), num_heads=(1, 1, 2, 2), **stages)
    )
    yield Architecture("timm maxvit_rmlp_pico_rw_256", made("maxvit_rmlp_pico_rw_256", img_size=SIDE, **narrow))
    yield Architecture("timm convnext_atto", made("convnext_atto", dims=(8, 16, 24, 32), **stages))
    yield Architecture("timm resnet18", made("resnet18", layers=(1, 1, 1, 1), channels=(8, 16, 24, 32)))
    yield Architecture("timm efficientnet_lite0", made("efficientnet_lite0"))
    yield Architecture("timm mobilenetv3_small_050", made("mobilenetv3_small_050"))


def torchvision_ones() -> Iterator[Architecture]:
    def made(name: str, **sizes: Any) -> Callable[[], nn.Module]:
        def make() -> nn.Module:
            models = import_torchvision("this table").models
            return models.get_model(name, weights=None, num_classes=CLASSES, **sizes)

        return make

    def vit() -> nn.Module:
        models = import_torchvision("this table").models
        return models.VisionTransformer(SIDE, 16, 2, 3, 48, 96, num_classes=CLASSES)

    def swin() -> nn.Module:
        models = import_torchvision("this table").models
        return models.SwinTransformer([4, 4], 24, [1, 1], [2, 2], [4, 4], num_classes=CLASSES)

    yield Architecture("torchvision vit", vit)
    yield Architecture("torchvision swin", swin)

    def densenet() -> nn.Module:
        return import_torchvision("this table").models.DenseNet(8, (2, 2, 2, 2), 16, num_classes=CLASSES)

    yield Architecture("torchvision densenet", densenet)
    for name in ("resnet18", "mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x0_5"):
        yield Architecture(f"torchvision {name}", made(name))
    yield Architecture("torchvision regnet_y_400mf", made("regnet_y_400mf"))


def transformers_ones() -> Iterator[Architecture]:
    sizes = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 96}
    shape = {"image_size": SIDE, "patch_size": 16}

    def made(kind: str, **more: Any) -> Callable[[], nn.Module]:
        def make() -> nn.Module:
            import transformers

            config = getattr(transformers, f"{kind}Config")(num_labels=CLASSES, **more)
            return LogitsOf(getattr(transformers, f"{kind}ForImageClassification")(config))

        return make

    for kind in ("ViT", "DeiT", "Beit", "Dinov2", "ViTMSN"):
        yield Architecture(f"transformers {kind}", made(kind, **sizes, **shape))
    yield Architecture("transformers ViT, eager", made("ViT", attn_implementation="eager", **sizes, **shape))
    for kind in ("CLIP", "Siglip"):
        yield Architecture(f"transformers {kind}", made(kind, vision_config={**sizes, **shape}, text_config=sizes))
    swin = {"image_size": SIDE, "patch_size": 4, "embed_dim": 24, "depths": [1, 1], "num_heads": [2, 2]}
    for kind in ("Swin", "Swinv2"):
        yield Architecture(f"transformers {kind}", made(kind, window_size=4, **swin))
    yield Architecture("transformers ResNet", made("ResNet", embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1]))
    yield Architecture("transformers ConvNext", made("ConvNext", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]))


def all_of_them() -> list[Architecture]:
    return [*timm_ones(), *torchvision_ones(), *transformers_ones()]


def model_of(architecture: Architecture) -> Model:
    """The network with seeded weights, moved off the symmetric points at which some begin."""
    torch.manual_seed(0)
    network = architecture.make().eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    return Model(architecture.name, network, (0.5,) * 3, (0.25,) * 3)


def pictures(side: int) -> Batch:
    images = torch.rand(3, 3, side, side, generator=torch.Generator().manual_seed(1))
    return Batch(images, torch.tensor([0, 1, 2]), ("a", "b", "c"))


def own_gradient_moves(model: Model, batch: Batch) -> bool:
    """Whether PyTorch's own gradient of the network changes with batch mates, as that of XCiT does in torch 2.13."""
    maps = torch.cat([InputXGradient()(model, batch.select([row])) for row in range(len(batch))])
    together = InputXGradient()(model, batch)
    return float((together - maps).abs().max()) > CLOSE * float(together.abs().max())


def outcome(model: Model, batch: Batch, method: Any, exact: bool = True) -> str:
    """Empty if it works, else the reason that the method gives, or `error: …`. Not `exact`: whatever the batch mates do
    to it.
    """
    try:
        together = attribute(model, batch, method).maps
        alone = torch.cat([attribute(model, batch.select([row]), method).maps for row in range(len(batch))])
    except NotApplicable as reason:
        return str(reason)
    except Exception as error:
        return f"{ERROR}{type(error).__name__}: {error}"
    gap, largest = float((together - alone).abs().max()), float(together.abs().max())
    with torch.no_grad():
        rounding = NOISE * float(model(batch.images).abs().max())  # differences of logits are no more exact than these
    if exact and gap > max(CLOSE * largest, rounding, 1e-17) and not is_unstable(method):
        moves = f"it moves by {gap / largest:.1g} of its largest value with its batch mates"
        return f"works, but {moves}" if gap <= NOISY * largest else ERROR + moves
    return ""


def row_of(architecture: Architecture, methods: Mapping[str, Any]) -> dict[str, str]:
    """The outcome of every method, and under MOVED whether PyTorch's own gradient moves with batch mates."""
    model, batch = model_of(architecture), pictures(architecture.side)
    moves = own_gradient_moves(model, batch)
    found = {name: outcome(model, batch, method, exact=not moves) for name, method in methods.items()}
    return {**found, MOVED: "yes" if moves else ""}


def chosen_methods(names: Sequence[str] = ()) -> dict[str, Any]:
    wanted = names or [name for name in registry.names("method") if name not in HIDDEN]
    return {name: registry.find("method", name, **CHEAP.get(name, {})) for name in wanted}


def table(found: Mapping[str, Mapping[str, str]], methods: Sequence[str]) -> str:
    """The page: a row per architecture, a column per method that works on some, and the reasons by number."""
    refused = {name: [row[name].replace(architecture, "…") for architecture, row in found.items()] for name in methods}
    everywhere = [name for name, why in refused.items() if not any(why)]
    nowhere = [name for name, why in refused.items() if all(why)]
    others = [name for name in methods if name not in (*everywhere, *nowhere)]
    numbers = {
        why: at for at, why in enumerate(dict.fromkeys(why for name in others for why in refused[name] if why), 1)
    }
    lines = [
        "# Which methods work on which architectures",
        "",
        "Written by `benchmarks/architectures.py`: small copies with random weights, three pictures, together and one",
        "by one. ✓ means finite maps that are the same, however pictures are batched, to 1e-5 of their largest value",
        "or 1e-6 of the largest logit; a number is a reason, or says by how much more maps move.",
        "`heatproof list methods --for MODEL` makes such a list",
        "for your network.",
        "",
        f"On all {len(found)} architectures: {', '.join(f'`{name}`' for name in everywhere)}.",
        *(f"\nOn none, `{name}`: {refused[name][0]}." for name in nowhere),
        "",
        "| architecture | " + " | ".join(f"`{name}`" for name in others) + " |",
        "|---|" + "---|" * len(others),
    ]
    for row, name in enumerate(found):
        cells = [str(numbers[refused[method][row]]) if refused[method][row] else "✓" for method in others]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", *(f"{number}. {reason}" for reason, number in numbers.items())]
    for name in (name for name, row in found.items() if row[MOVED]):
        lines += ["", f"{name}: PyTorch {torch.__version__} itself gives another gradient for a picture alone."]
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "architectures.md")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    import_torchvision("this table")
    methods = chosen_methods([name for name in given.methods.split(",") if name])
    words = [word for word in given.only.split(",") if word]
    found: dict[str, dict[str, str]] = {}
    if given.kept and given.kept.exists():
        found = json.loads(given.kept.read_text())
    with engine.use(engine.Engine(measure=False)):
        for architecture in all_of_them():
            before = found.get(architecture.name, {})
            known = {name: why for name, why in before.items() if not why.startswith(ERROR)}
            if (words and not any(word in architecture.name for word in words)) or {*methods} <= {*known}:
                continue
            wanted = {name: method for name, method in methods.items() if name not in known}
            found[architecture.name] = {**known, **row_of(architecture, wanted)}
            if given.kept:
                given.kept.write_text(json.dumps(found, indent=1))
            print(architecture.name, file=sys.stderr, flush=True)
    wrong = [(name, at, why) for name, row in found.items() for at, why in row.items() if why.startswith(ERROR)]
    if wrong:
        raise SystemExit("\n".join(f"{name}, {method}: {why}" for name, method, why in wrong))
    ordered = {one.name: found[one.name] for one in all_of_them() if one.name in found}
    given.out.write_text(table(ordered, list(methods)))


if __name__ == "__main__":
    main()
