"""`tcav`: does a concept matter to a class, and in which layers?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from heatproof.cli._terminal import Device, echo, readable_errors

if TYPE_CHECKING:
    from heatproof.types import Batch


def tcav(
    model: Annotated[str, typer.Option(help="The model to explain.")],
    concept: Annotated[str, typer.Option(help="Pictures with the concept: a folder or data set.")],
    without: Annotated[str, typer.Option(help="Pictures without it; at least twice as many as --size.")],
    images: Annotated[str, typer.Option(help="Pictures whose class scores are tested.")],
    target: Annotated[int | None, typer.Option(help="The class to test; default: the predicted one.")] = None,
    layers: Annotated[str, typer.Option(help="a,b,c; default: up to four stages.")] = "",
    runs: Annotated[int, typer.Option(help="Random counterparts, at least 10.")] = 20,
    size: Annotated[int, typer.Option(help="Pictures per set.")] = 60,
    limit: Annotated[int, typer.Option(help="Number of pictures, a seeded sample balanced over classes.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the random sets.")] = 0,
    strict: Annotated[
        bool, typer.Option("--strict", help="Test each score against CAVs of random image sets.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False,
    device: Device = "auto",
) -> None:
    """TCAV scores of a concept, layer by layer, each tested against random directions.

    The published test treats runs that share the concept's pictures as independent, so that pictures without any
    concept pass it too often; --strict does not.
    """
    from heatproof import data, engine, models
    from heatproof.data._support.sample import sample
    from heatproof.errors import BadInput
    from heatproof.methods.tcav import TCAV, read_for
    from heatproof.models._support.outputs import recognised

    with readable_errors():
        if limit < 1:
            raise BadInput(f"--limit must be at least 1 picture, got {limit}")
        loaded = models.load(model).to(engine.pick(device))
        named = tuple(word.strip() for word in layers.split(",") if word.strip())
        sets = {"concept": data.load(concept), "without": data.load(without), "images": data.load(images)}
        tcav_method = TCAV(
            sets["concept"],
            sets["without"],
            named,
            runs,
            size,
            against="sets" if strict else "runs",
            shown_by=None,
            seed=seed,
        )
        with engine.threads_for([loaded]):
            places = {
                "concept": range(min(size, len(sets["concept"]))),
                "without": range(len(sets["without"])),
                "images": sample(sets["images"], limit, seed),
            }
            seen = {what: read_for(loaded, spec, places[what]) for what, spec in sets.items()}
            for what, batch in seen.items():
                _warn_of_missing(what, batch)
            if len(seen["concept"]) < size:
                few = f"{len(seen['concept'])} concept pictures are fewer than --size {size}"
                echo(f"{few}: every set is reduced to that number, and a weak concept may be missed", err=True)
            batch = seen["images"]
            loaded = recognised(loaded, batch.images)
            logits = engine.forward(loaded, batch.images)
            if target is not None and not 0 <= target < logits.shape[1]:
                raise BadInput(f"--target must be a class of the model, 0 … {logits.shape[1] - 1}, got {target}")
            answers = logits.argmax(1) if target is None else batch.targets.new_full((len(batch),), target)
            tested = tcav_method.test(loaded, batch.aimed(answers))
    rows = [
        {
            "layer": test.layer,
            "score": test.score,
            "random": test.chance,
            "p": test.p_value,
            "kept": test in tested.kept,
        }
        for test in tested.layers
    ]
    score = tested.score if tested.kept else None
    if as_json:
        echo(json.dumps({"score": score, "pictures": len(batch), "layers": rows}, indent=1))
        return
    for row in rows:
        kept = "kept" if row["kept"] else f"not different from chance (needs p < {tcav_method.level:g})"
        echo(f"{row['layer']:<24} score {row['score']:.3f}  random {row['random']:.3f}  p {row['p']:.2g}  {kept}")
    many = f"{len(batch)} picture{'' if len(batch) == 1 else 's'}"
    echo(
        f"not applicable: the concept differs from chance in no layer ({many})"
        if score is None
        else f"TCAV {score:.3f} ({many}, mean of {len(tested.kept)} of {len(rows)} layers)"
    )


def _warn_of_missing(what: str, batch: Batch) -> None:
    """Warns of unreadable pictures, which are left out; raises if no picture is left."""
    from heatproof.errors import BadInput

    if not batch.missing and len(batch):
        return
    first = next((f", e.g. {name}: {why}" for name, why in batch.missing.items()), "")
    if not len(batch):
        raise BadInput(f"--{what} must hold pictures that can be read, got none{first}")
    echo(f"heatproof: {len(batch.missing)} of the pictures of --{what} cannot be read{first}", err=True)
