"""`demo`: judges the first contestants on embedded models and data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heatproof.cli._outcome import run_and_report
from heatproof.cli._terminal import Device, Out, Quiet, Workers


def demo(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer pictures and methods: under a minute.")] = False,
    out: Out = Path("runs/demo"),
    device: Device = "auto",
    workers: Workers = "auto",
    quiet: Quiet = False,
) -> None:
    """Judge the first contestants on the embedded models and data, and draw the report."""
    from heatproof.demo import studies

    run_and_report(studies(quick), out, device, workers, quiet)
