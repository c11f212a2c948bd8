"""A CLIP or SigLIP in the layout of open_clip: a folder with open_clip_config.json, weights and, if it has one, its
tokenizer.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from heatproof.errors import BadInput, BadModel, Missing
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.models._support.towers import Towers, in_parts, without_text
from heatproof.models._support.weights import weights_only
from heatproof.types import View

CONFIG = "open_clip_config.json"


def read(folder: Path, spec: str, texts: Sequence[str]) -> Towers:
    """The towers, after they have read the texts, with the preprocessing and the tokenizer of their configuration."""
    import_torchvision(f"the model {spec!r}")  # open_clip imports it
    try:
        open_clip = importlib.import_module("open_clip")
    except ImportError as error:
        raise Missing.package("open_clip_torch", "clip", f"the model {spec!r}") from error
    declared = json.loads((folder / CONFIG).read_text(encoding="utf-8")).get("model_cfg", {})
    if not declared.get("text_cfg"):
        raise without_text(spec, f"{CONFIG} has no text_cfg")
    with weights_only():
        towers = open_clip.create_model(f"local-dir:{folder}", require_pretrained=True).eval().float()
    tokenizer = open_clip.get_tokenizer(f"local-dir:{folder}")
    prepared = towers.visual.preprocess_cfg
    return Towers(
        image=towers.visual,
        texts=in_parts(lambda some: towers.encode_text(_tokens(tokenizer, some, spec)), texts),
        scale=float(towers.logit_scale.detach().exp()),
        bias=None if towers.logit_bias is None else float(towers.logit_bias.detach()),
        mean=tuple(float(value) for value in prepared["mean"]),
        std=tuple(float(value) for value in prepared["std"]),
        view=_view(prepared, spec),
    )


def _tokens(tokenizer: Any, texts: Sequence[str], spec: str) -> Tensor:
    """Texts as the text tower wants them. open_clip cuts what is too long, which shows where there is more room."""
    tokens: Tensor = tokenizer(list(texts))
    room = tokens.shape[1]
    longer = tokenizer(list(texts), context_length=2 * room)[:, :room]
    for text, row, other in zip(texts, tokens, longer, strict=True):
        if not row.equal(other):
            raise BadInput(f"{spec}: the text {text!r} has more tokens than the {room} that the text tower reads")
    return tokens


def _view(prepared: Mapping[str, Any], spec: str) -> View:
    size = prepared["size"]
    height, width = (size, size) if isinstance(size, int) else size
    kinds: dict[str, Literal["bilinear", "bicubic"]] = {"bilinear": "bilinear", "bicubic": "bicubic"}
    if (
        height != width
        or prepared["resize_mode"] not in ("shortest", "squash")
        or prepared["interpolation"] not in kinds
    ):
        raise BadModel(
            f"{spec} prepares pictures by {prepared['resize_mode']} to {height}×{width} ({prepared['interpolation']}); "
            "heatproof offers squares, by shortest or squash, bilinear or bicubic"
        )
    return View(height, None if prepared["resize_mode"] == "squash" else height, kinds[prepared["interpolation"]])
