"""`run`: judge methods on a model and images, and draw the report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from heatproof.cli._completion import names_of
from heatproof.cli._help import examples
from heatproof.cli._outcome import crew_of, run_and_report, show_forecast, show_plan
from heatproof.cli._replayed import FirstRun
from heatproof.cli._terminal import Device, Gpus, Log, On, Out, Quiet, Workers, line, readable_errors, usage
from heatproof.run.share import Share
from heatproof.run.stored_engine import StoredEngine
from heatproof.run.until import NAME, Solid

EXAMPLES = examples(
    "run --model efficientnet-lite0 --images photos/ --methods lrp,grad_cam --metrics srg,pointing_game --masks masks/",
    'run --model mine.py:factory --images table.csv --methods saliency,mine.py:Ours --metrics "srg(telea/slic-30)"',
    "run --protocols pixel_flipping --limit 24 --dry-run",
    "run --model timm:vit_tiny_patch16_224 --images photos/ --metrics srg --until solid",
    "run runs/latest/study.json --out runs/again",
)


def run(
    study: Annotated[
        Path | None, typer.Argument(help="study.json that a run wrote (data), or STUDY.py (code).")
    ] = None,
    model: Annotated[list[str] | None, typer.Option(help="Model to explain; may be repeated.")] = None,
    images: Annotated[list[str] | None, typer.Option(help="Folder, CSV or built-in data set.")] = None,
    masks: Annotated[
        str, typer.Option(help="Folder of masks named like the pictures, or a pattern: 'masks/*_mask.png'.")
    ] = "",
    methods: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=names_of("method"),
            help="a,b,c(field=value),file.py:Name; may be repeated.",
        ),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=names_of("metric"),
            help="a,b,c(field=value); may be repeated.",
        ),
    ] = None,
    protocols: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=names_of("protocol"),
            help="all, or p,q(preset=paper); may be repeated.",
        ),
    ] = None,
    out: Out = Path("runs/latest"),
    limit: Annotated[
        int | None, typer.Option(help="This many pictures, the classes alike: a sample drawn by the seed.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    repeats: Annotated[
        int | None, typer.Option(help="Other seeds under which random methods explain a few pictures again [2].")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="What is explained: predicted, label, or a class, label or value (index, name)."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(help="What the model's numbers mean: softmax, sigmoid or regression, as it shows if left out."),
    ] = None,
    value_range: Annotated[
        str | None,
        typer.Option(help="Black and white in pictures of more than 8 bits: 0,4095; in physical units: -160,240."),
    ] = None,
    device: Device = "auto",
    workers: Workers = "auto",
    on: On = "local",
    gpus_per_worker: Gpus = None,
    engine: Annotated[
        str | None, typer.Option(help="auto, or reference: slower, the same numbers whatever this machine measured.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="solid: add pictures until every pair of methods is decided.", metavar="solid")
    ] = None,
    margin: Annotated[
        float | None, typer.Option(help="With --until: differences within ±MARGIN are equivalent [0.05].")
    ] = None,
    max_images: Annotated[int | None, typer.Option(help="With --until: no more pictures than this [all].")] = None,
    race: Annotated[
        bool, typer.Option("--race", help="With --until: drop beaten methods, stop when the first place is decided.")
    ] = False,
    steps: Annotated[
        str | None, typer.Option(help="With --until: points of flipping curves, fast (9) or full [fast].")
    ] = None,
    part: Annotated[
        str | None, typer.Option(help="Only this part of the work, for job arrays; see gather.", metavar="K/N")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what will be run, how long it takes, and what it can show.")
    ] = False,
    trust_pickle: Annotated[bool, typer.Option(help="Load weights that are arbitrary pickles.")] = False,
    trust_code: Annotated[bool, typer.Option("--trust-code", help="Run code that a study.json names.")] = False,
    log: Log = None,
    quiet: Quiet = False,
) -> None:
    """Judge methods on a model and images, under protocols or single metrics; write rows and a report.

    A STUDY.py is code, and runs. A study.json is data: code that it names is refused without --trust-code; --model
    and --images say where its models and pictures are now, if they were moved.
    """
    from heatproof.spec import from_options

    before, passes = None, StoredEngine()
    with readable_errors():
        rule = _rule(until, margin, max_images, race, steps)
        crew = crew_of(on, gpus_per_worker)
        share = None if part is None else Share.parse(part)
    if study is not None:
        moved = {"--model": model, "--images": images}
        given = {
            "--masks": masks or None,
            "--methods": methods,
            "--metrics": metrics,
            "--protocols": protocols,
            "--limit": limit,
            "--seed": seed,
            "--repeats": repeats,
            "--target": target,
            "--output": output,
            "--value-range": value_range,
            **({} if study.suffix == ".py" else {"--until": until}),
            **(moved if study.suffix == ".py" else {}),
        }
        clash = [name for name, value in given.items() if value is not None and value != []]
        if clash:
            usage(f"a study file holds all of this itself: leave out {', '.join(clash)}")
        from heatproof.spec.study import load

        with readable_errors():
            if trust_code and study.suffix != ".py":
                _list_code(study, models_too=not model)
            studies = load(study, trust_pickle, model or [], images or [], trust_code)
            rule, share = rule or Solid.load(study), share or Share.load(study)
            before, passes = FirstRun.beside(study, trust_code), StoredEngine.beside(study)
    else:
        with readable_errors():
            studies = from_options.studies(
                models=model or [],
                images=images or [],
                masks=masks,
                methods=_joined(methods),
                metrics=_joined(metrics),
                protocols=_joined(protocols),
                trust_pickle=trust_pickle,
                output=output,
                value_range=value_range,
                changes={"limit": limit, "seed": seed, "repeats": repeats, "target": target},
            )
    chosen = passes if engine is None else passes.of_kind(engine)
    if dry_run:
        show_forecast(studies, device, workers, crew, rule)
        return
    show_plan(studies, quiet)
    run_and_report(studies, out, device, workers, quiet, before, chosen, crew, rule, share, log)


def _rule(
    until: str | None, margin: float | None, max_images: int | None, race: bool, steps: str | None
) -> Solid | None:
    """The rule to stop by; options that belong to it need it."""
    given = {"--margin": margin is not None, "--max-images": max_images is not None, "--race": race}
    given["--steps"] = steps is not None
    if until is None:
        if extra := [name for name, there in given.items() if there]:
            usage(f"{', '.join(extra)} needs --until solid: add it, or leave {'it' if len(extra) == 1 else 'them'} out")
        return None
    if until != NAME:
        usage(f"--until must be {NAME}, got {until!r}: it is the only rule to stop by")
    points: Any = Solid.steps if steps is None else steps
    return Solid(Solid.margin if margin is None else margin, max_images, race, steps=points)


def _list_code(study: Path, models_too: bool) -> None:
    """List the code that a stored study brings, before it runs."""
    from heatproof.spec import study_file, user_code

    stored = study_file.read(study)
    for one in [*user_code.named(stored, models_too), *user_code.written_in(stored)]:
        line(f"Trusted to run: {one}", err=True)


def _joined(words: list[str] | None) -> str | None:
    """The values of a repeated option as one list of names."""
    return ",".join(words) if words else None
