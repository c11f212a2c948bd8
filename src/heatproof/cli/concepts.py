"""`tcav`: does a concept matter to a class, and in which layers?"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from heatproof.cli.terminal import Device, readable_errors


def tcav(
    model: Annotated[str, typer.Option(help="Who is explained.")],
    concept: Annotated[str, typer.Option(help="Pictures with the concept: a folder or data set.")],
    without: Annotated[str, typer.Option(help="Pictures without it; at least twice as many as --size.")],
    images: Annotated[str, typer.Option(help="Pictures whose answers are asked about.")],
    target: Annotated[int | None, typer.Option(help="The class asked about; default: what the model says.")] = None,
    layers: Annotated[str, typer.Option(help="a,b,c; default: up to four stages.")] = "",
    runs: Annotated[int, typer.Option(help="Random counterparts, at least 10.")] = 20,
    size: Annotated[int, typer.Option(help="Pictures per set.")] = 60,
    limit: Annotated[int, typer.Option(help="Only the first so many pictures.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the random sets.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False,
    device: Device = "auto",
) -> None:
    """TCAV scores of a concept, layer by layer, each tested against random directions."""
    from heatproof import data, models
    from heatproof.methods.concepts import TCAV, read_for
    from heatproof.models import engine

    with readable_errors():
        loaded = models.load(model).to(engine.pick(device))
        named = tuple(word.strip() for word in layers.split(",") if word.strip())
        asked = TCAV(data.load(concept), data.load(without), named, runs, size, shown_by=None, seed=seed)
        batch = read_for(loaded, data.load(images), limit)
        answers = engine.forward(loaded, batch.images).argmax(1)
        tested = asked.test(loaded, batch.aimed(answers if target is None else answers.new_full(answers.shape, target)))
    rows = [
        {"layer": one.layer, "score": one.score, "random": one.chance, "p": one.p_value, "kept": one in tested.kept}
        for one in tested.layers
    ]
    score = tested.score if tested.kept else None
    if as_json:
        typer.echo(json.dumps({"score": score, "pictures": len(batch), "layers": rows}, indent=1))
        return
    for row in rows:
        kept = "kept" if row["kept"] else "not told from chance"
        typer.echo(f"{row['layer']:<24} score {row['score']:.3f}  random {row['random']:.3f}  p {row['p']:.2g}  {kept}")
    typer.echo("not applicable: no layer tells the concept from chance" if score is None else f"TCAV {score:.3f}")
