"""A CLIP or SigLIP in the layout of transformers: a folder, or a repository of the hub."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from heatproof import torchvision_import
from heatproof.errors import BadInput, Missing
from heatproof.models._support.towers import Towers, in_parts, without_text
from heatproof.models._support.weights import weights_only
from heatproof.models.huggingface import preprocessing, read_normalisation, read_view
from heatproof.zero_shot import features_of


class ImageTower(nn.Module):
    """The features that a two-tower network of transformers has of pictures; its text tower is let go."""

    def __init__(self, towers: nn.Module) -> None:
        super().__init__()
        for name in [name for name, _ in towers.named_children() if name.startswith("text_")]:
            setattr(towers, name, None)
        self.towers = towers

    def forward(self, images: Tensor) -> Tensor:
        return features_of(self.towers.get_image_features(pixel_values=images))  # type: ignore[operator]


def read(name: str, spec: str, texts: Sequence[str]) -> Towers:
    """The towers, after they have read the texts, with the preprocessing and the tokenizer beside them."""
    torchvision_import.mend()  # transformers imports it where it is installed
    try:
        transformers = importlib.import_module("transformers")
    except ImportError as error:
        raise Missing.package("transformers", "huggingface", f"the model {spec!r}") from error
    config = transformers.AutoConfig.from_pretrained(name, trust_remote_code=False)
    if not (hasattr(config, "text_config") and hasattr(config, "vision_config")):
        raise without_text(spec, f"it is a {config.model_type}")
    with weights_only():
        towers, found = transformers.AutoModel.from_pretrained(name, trust_remote_code=False, output_loading_info=True)
    if missing := sorted(found["missing_keys"]):
        raise without_text(spec, f"no weights of {', '.join(missing[:3])}{', …' if len(missing) > 3 else ''}")
    towers.eval().float()
    tokenizer = transformers.AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    longest = int(config.text_config.max_position_embeddings)
    declared = preprocessing(name)
    view = read_view(declared, spec)
    mean, std = read_normalisation(declared)
    bias = getattr(towers, "logit_bias", None)

    def features(some: Sequence[str]) -> Tensor:
        return features_of(towers.get_text_features(**_tokens(tokenizer, some, longest, spec)))

    read = in_parts(features, texts)
    return Towers(
        image=ImageTower(towers),
        texts=read,
        scale=float(towers.logit_scale.detach().exp()),
        bias=None if bias is None else float(bias.detach()),
        mean=mean,
        std=std,
        view=view,
    )


def _tokens(tokenizer: Any, texts: Sequence[str], longest: int, spec: str) -> dict[str, Tensor]:
    """Texts as the text tower wants them; padded to its full length, as SigLIP was trained."""
    for text, row in zip(texts, tokenizer(list(texts))["input_ids"], strict=True):
        if len(row) > longest:
            raise BadInput(f"{spec}: the text {text!r} has {len(row)} tokens, and the text tower reads {longest}")
    found = tokenizer(list(texts), padding="max_length", max_length=longest, return_tensors="pt")
    return {name: values for name, values in found.items() if name in ("input_ids", "attention_mask")}
