"""Small random two-tower networks, saved in the layouts of transformers and of open_clip."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from heatproof.models._support.torchvision_repair import import_torchvision

SIDE = 32
SIZES = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
VISION = {**SIZES, "image_size": SIDE, "patch_size": 8}


def of_transformers(folder: Path, kind: str = "CLIP") -> Any:
    """A CLIP, or with `kind="Siglip"` a SigLIP, with weights, tokenizer and image processor in the folder."""
    import_torchvision("this test")
    import transformers

    tokenizer = _tokenizer(folder, transformers)
    text = {**SIZES, "vocab_size": len(tokenizer), "max_position_embeddings": 40}
    text |= {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    more = {"projection_dim": 16} if kind == "CLIP" else {}
    config = getattr(transformers, f"{kind}Config")(text_config=text, vision_config=VISION, **more)
    torch.manual_seed(0)
    network = getattr(transformers, f"{kind}Model")(config).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim:
                parameter.add_(0.1 * torch.randn_like(parameter))
        network.logit_scale.fill_(3.0)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    size = {"shortest_edge": SIDE} if kind == "CLIP" else {"height": SIDE, "width": SIDE}
    prepared = {"image_processor_type": f"{kind}ImageProcessor", "size": size, "resample": 3, "do_rescale": True}
    prepared |= {"do_normalize": True, "image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.3, 0.4]}
    prepared |= {"do_center_crop": True, "crop_size": {"height": SIDE, "width": SIDE}} if kind == "CLIP" else {}
    (folder / "preprocessor_config.json").write_text(json.dumps(prepared))
    return network


def _tokenizer(folder: Path, transformers: Any) -> Any:
    """Letters, one token each."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({word: at for at, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    return transformers.CLIPTokenizer.from_pretrained(str(folder))


def of_open_clip(folder: Path, bias: float | None = None) -> Any:
    """A CLIP of open_clip, with a bias as SigLIP has one."""
    import_torchvision("this test")
    import open_clip
    from safetensors.torch import save_file

    config: dict[str, Any] = {
        "embed_dim": 16,
        "quick_gelu": True,
        "vision_cfg": {"image_size": SIDE, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8},
        "text_cfg": {"context_length": 24, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
    }
    if bias is not None:
        config["init_logit_bias"] = bias
    torch.manual_seed(0)
    network = open_clip.CLIP(**config).eval()
    folder.mkdir(parents=True, exist_ok=True)
    save_file(dict(network.state_dict()), folder / "open_clip_model.safetensors")
    prepared = {"mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.4], "resize_mode": "squash" if bias else "shortest"}
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": config, "preprocess_cfg": prepared}))
    return network
