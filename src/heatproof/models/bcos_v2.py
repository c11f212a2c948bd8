"""Published B-cos networks for ImageNet from weights on disk: `bcos:resnet50@path/to/resnet_50-….pth`.

The layer names are those of the B-cos-v2 release, so its checkpoints load unchanged. The release adds a constant
bias, the same for every class, to the logits; it is left out here, which changes no probability and lets contributions
sum to the logit.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heatproof.errors import BadModel, UnknownName
from heatproof.models._support.imagenet_names import imagenet_classes
from heatproof.models._support.weights import Weights, put_weights, read_weights
from heatproof.models.bcos import BCosConv2d, Encoding, SelfExplainingNetwork, UncentredNorm2d
from heatproof.registry import model
from heatproof.types import Model, View

# Blocks per stage, and whether a block is a bottleneck of three convolutions.
RESNETS: dict[str, tuple[tuple[int, ...], bool]] = {
    "resnet18": ((2, 2, 2, 2), False),
    "resnet34": ((3, 4, 6, 3), False),
    "resnet50": ((3, 4, 6, 3), True),
    "resnet101": ((3, 4, 23, 3), True),
    "resnet152": ((3, 8, 36, 3), True),
}
VGGS: dict[str, tuple[int, ...]] = {"vgg11_bnu": (64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0)}  # 0: pooling
NAMES = (*RESNETS, *VGGS)


class Block(nn.Module):
    """A residual block of two or three B-cos convolutions, each with its norm; no rectifiers."""

    def __init__(self, before: int, width: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        after = width * 4 if bottleneck else width
        if bottleneck:
            sizes = [(before, width, 1, 1), (width, width, 3, stride), (width, after, 1, 1)]
        else:
            sizes = [(before, width, 3, stride), (width, width, 3, 1)]
        self.count = len(sizes)
        for number, (inside, outside, kernel, step) in enumerate(sizes, start=1):
            self.add_module(f"conv{number}", BCosConv2d(inside, outside, kernel, step, kernel // 2))
            self.add_module(f"bn{number}", UncentredNorm2d(outside))
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or before != after:
            self.downsample = nn.Sequential(BCosConv2d(before, after, 1, stride), UncentredNorm2d(after))

    def forward(self, maps: Tensor) -> Tensor:
        inner = maps
        for number in range(1, self.count + 1):
            inner = self.get_submodule(f"bn{number}")(self.get_submodule(f"conv{number}")(inner))
        return inner + self.downsample(maps)  # type: ignore[no-any-return]


class BCosResNet(SelfExplainingNetwork):
    """A residual network of B-cos layers; the classifier comes before the pooling."""

    def __init__(self, blocks: tuple[int, ...], bottleneck: bool, classes: int = 1000, width: int = 64) -> None:
        super().__init__()
        self.encoding = Encoding()
        self.conv1 = BCosConv2d(6, width, 7, 2, 3)
        self.bn1 = UncentredNorm2d(width)
        self.pool = nn.AvgPool2d(3, 2, 1)
        before = width
        for stage, count in enumerate(blocks):
            made = []
            for at in range(count):
                made.append(Block(before, width << stage, 2 if stage and not at else 1, bottleneck))
                before = (width << stage) * (4 if bottleneck else 1)
            self.add_module(f"layer{stage + 1}", nn.Sequential(*made))
        self.stages = len(blocks)
        self.fc = BCosConv2d(before, classes, 1)
        self.avgpool = nn.AdaptiveAvgPool2d(1)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.pool(self.bn1(self.conv1(self.encoding(images))))
        for stage in range(1, self.stages + 1):
            maps = self.get_submodule(f"layer{stage}")(maps)
        return self.avgpool(self.fc(maps)).flatten(1)  # type: ignore[no-any-return]


class BCosVGG(SelfExplainingNetwork):
    """Plain B-cos convolutions with norms and average pooling; the classifier before the last pooling."""

    def __init__(self, widths: tuple[int, ...], classes: int = 1000, hidden: int = 4096) -> None:
        super().__init__()
        self.encoding = Encoding()
        steps: list[nn.Module] = []
        before = 6
        for width in widths:
            if not width:
                steps.append(nn.AvgPool2d(2, 2))
                continue
            steps += [BCosConv2d(before, width, 3, 1, 1), UncentredNorm2d(width)]
            before = width
        self.features = nn.Sequential(*steps)
        self.classifier = nn.Sequential(
            BCosConv2d(before, hidden, 7, 1, 3), BCosConv2d(hidden, hidden, 1), BCosConv2d(hidden, classes, 1)
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)

    def forward(self, images: Tensor) -> Tensor:
        return self.avgpool(self.classifier(self.features(self.encoding(images)))).flatten(1)  # type: ignore[no-any-return]


def empty(name: str, classes: int = 1000) -> SelfExplainingNetwork:
    """The architecture of that name, with random weights."""
    if name in RESNETS:
        return BCosResNet(*RESNETS[name], classes=classes)
    if name in VGGS:
        return BCosVGG(VGGS[name], classes)
    raise UnknownName.among("B-cos network", name, NAMES)


def _kept(weights: Weights) -> Weights:
    """The weights without the means and counters of the published norms, which are never used."""
    unused = ("running_mean", "num_batches_tracked")
    return {name: value for name, value in weights.items() if not name.endswith(unused)}


@model("bcos")
def load_bcos(name: str = "resnet18", weights: str = "random", trust_pickle: bool = False) -> Model:
    """A B-cos network for ImageNet, as `bcos:NAME@WEIGHTS`: a file of the B-cos-v2 release, or `random`.

    Paper: Böhle et al. 2024, "B-cos Alignment for Inherently Interpretable CNNs and Vision Transformers"
    """
    if not weights:
        raise BadModel(
            f"bcos:{name} must name a file of weights, as in bcos:{name}@path/to/file.pth: they are not downloaded"
        )
    if weights == "random":
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            network = empty(name)
    else:
        stored = _kept(read_weights(weights, trust_pickle))
        head = next((stored[key] for key in ("fc.linear.weight", "classifier.2.linear.weight") if key in stored), None)
        if head is None:
            raise BadModel(f"{weights} must be a checkpoint of a B-cos ResNet or VGG, got one without their classifier")
        network = empty(name, len(head))
        put_weights(network, stored, weights)
    classes = imagenet_classes()
    count = (network.fc if isinstance(network, BCosResNet) else network.classifier[-1]).linear.out_channels  # type: ignore[union-attr, index]
    return Model(
        name=f"bcos:{name}@{weights}",
        network=network,
        cam_layer="layer4" if name in RESNETS else "features",
        view=View(224, 256),
        classes=classes if len(classes) == count else (),
    )
