"""`judge`: every protocol that applies to a model and pictures, with one line-up of methods."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from heatproof.cli._completion import names_of
from heatproof.cli._help import examples
from heatproof.cli._outcome import crew_of, run_and_report, show_forecast, show_plan
from heatproof.cli._terminal import Device, Gpus, Log, On, Out, Quiet, Workers, readable_errors

EXAMPLES = examples(
    "judge efficientnet-lite0 photos/ --limit 24 --dry-run",
    "judge timm:resnet50 photos/ --masks 'masks/*_mask.png' --methods lrp,grad_cam,mine.py:Ours",
)


class Preset(StrEnum):
    """Which settings the protocols have."""

    common = "common"
    paper = "paper"


def judge(
    model: Annotated[str, typer.Argument(help="The model to explain.")],
    images: Annotated[str, typer.Argument(help="Folder, CSV or built-in data set.")],
    masks: Annotated[
        str, typer.Option(help="Folder of masks named like the pictures, or a pattern: 'masks/*_mask.png'.")
    ] = "",
    methods: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=names_of("method"),
            help="a,b,c(field=value),file.py:Name; may be repeated [a line-up of nine].",
        ),
    ] = None,
    preset: Annotated[
        Preset, typer.Option(help="common: one configuration of each method everywhere; paper: each paper's own.")
    ] = Preset.common,
    out: Out = Path("runs/latest"),
    limit: Annotated[int | None, typer.Option(help="This many pictures at most [32].")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    value_range: Annotated[
        str | None,
        typer.Option(help="Black and white in pictures of more than 8 bits: 0,4095; in physical units: -160,240."),
    ] = None,
    device: Device = "auto",
    workers: Workers = "auto",
    on: On = "local",
    gpus_per_worker: Gpus = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what will be run, and how long it takes.")
    ] = False,
    trust_pickle: Annotated[bool, typer.Option(help="Load weights that are arbitrary pickles.")] = False,
    log: Log = None,
    quiet: Quiet = False,
) -> None:
    """Judge methods under every protocol that applies; the short form of `run --protocols all`."""
    from heatproof.spec import from_options

    with readable_errors():
        crew = crew_of(on, gpus_per_worker)
        studies = from_options.studies(
            models=[model],
            images=[images],
            masks=masks,
            methods=",".join(methods) if methods else None,
            metrics=None,
            protocols=f"all(preset={preset.value})",
            trust_pickle=trust_pickle,
            value_range=value_range,
            changes={"limit": limit, "seed": seed},
        )
    if dry_run:
        show_forecast(studies, device, workers, crew, None)
        return
    show_plan(studies, quiet)
    run_and_report(studies, out, device, workers, quiet, on=crew, log=log)
