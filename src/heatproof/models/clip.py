"""CLIP and SigLIP as classifiers: `clip:FOLDER@"a photo of a {cat|dog}"`."""

from __future__ import annotations

from collections.abc import Sequence

from heatproof.errors import BadInput, BadModel, HeatproofError
from heatproof.models._support import towers_of_open_clip, towers_of_transformers
from heatproof.models._support.cam_layer import find_cam_layer, takes_one_size
from heatproof.models._support.prompts import DEFAULT, read_prompts
from heatproof.models._support.towers import Towers
from heatproof.models.huggingface import refuse_code
from heatproof.registry import model
from heatproof.storage import any_path
from heatproof.types import Model
from heatproof.zero_shot import ZeroShot


@model("clip")
def load_clip(name: str = "openai/clip-vit-base-patch32", prompts: str = DEFAULT) -> Model:
    """A zero-shot classifier: a CLIP or SigLIP that compares pictures with a text per class, as `clip:FOLDER@PROMPTS`.

    FOLDER is in the layout of transformers or open_clip; a repository of the hub works, too. PROMPTS are templates with
    one `{}` each, separated by semicolons; the names of the classes stand in the first, `{cat|dog}`, or, one per line,
    in a file `{names.txt}` or in FOLDER/classes.txt. CLIP chooses one class; of SigLIP each text is a yes or no of its
    own, unless `--output softmax` says otherwise.
    """
    spec = f"clip:{name}@{prompts}"
    chosen = read_prompts(prompts, name, spec)
    towers = _towers(name, spec, chosen.texts())
    if towers.bias is None and len(chosen.classes) < 2:
        raise BadInput(f"{spec} compares classes, and names one: name at least two, as in {{cat|dog}}")
    texts = towers.texts.unflatten(0, (len(chosen.classes), len(chosen.templates)))
    network = ZeroShot(towers.image, texts, towers.scale, towers.bias or 0.0).requires_grad_(False)
    size = towers.view.sides
    return Model(
        spec,
        network,
        towers.mean,
        towers.std,
        find_cam_layer(network, size),
        towers.view,
        classes=chosen.classes,
        fixed_size=takes_one_size(network, size),
        output="softmax:logits" if towers.bias is None else "sigmoid:logits",
    )


def _towers(name: str, spec: str, texts: Sequence[str]) -> Towers:
    """The towers in a folder, or in a repository of the hub."""
    folder = any_path.expanded(name)
    local = any_path.is_dir(folder)
    open_clip = any_path.is_file(folder / towers_of_open_clip.CONFIG)
    if local and not open_clip and not any_path.is_file(folder / "config.json"):
        raise BadModel(
            f"{spec}: the folder {name} holds neither config.json (transformers) nor {towers_of_open_clip.CONFIG} "
            "(open_clip): save a CLIP or SigLIP there, with its tokenizer and image processor"
        )
    try:
        if open_clip:
            return towers_of_open_clip.read(folder, spec, texts)
        return towers_of_transformers.read(str(folder) if local else name, spec, texts)
    except HeatproofError:
        raise
    except Exception as error:  # the hub, its cache and a folder can each fail in their own way
        refuse_code(error, spec)
        raise BadModel(
            f"{spec} could not be read as a CLIP or SigLIP with both towers ({str(error).strip()[:300]}): without "
            "internet, pass a local folder with configuration, weights, tokenizer and image processor"
        ) from error
