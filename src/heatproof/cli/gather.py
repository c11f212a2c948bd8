"""`gather`: puts the parts of a study together that `run --part` computed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heatproof.cli._help import examples
from heatproof.cli._outcome import end
from heatproof.cli._terminal import Out, readable_errors

EXAMPLES = examples("gather runs/val-1 runs/val-2 runs/val-3 --out runs/val", "gather runs/val-* --out runs/val")


def gather(
    directories: Annotated[list[Path], typer.Argument(help="The --out directories of all parts.")],
    out: Out = Path("runs/latest"),
    model: Annotated[list[str] | None, typer.Option(help="Where a model is now, in the stored order.")] = None,
    images: Annotated[list[str] | None, typer.Option(help="Where pictures are now, in the stored order.")] = None,
    trust_pickle: Annotated[bool, typer.Option(help="Load weights that are arbitrary pickles.")] = False,
    trust_code: Annotated[bool, typer.Option("--trust-code", help="Run code that the studies name.")] = False,
) -> None:
    """Put the parts of a study together, which `heatproof run … --part 3/16` computed; write rows and a report.

    Computes nothing. Refuses parts of different studies, and says which parts are missing.
    """
    from heatproof.report import report as draw
    from heatproof.run.gather import gather as put_together

    with readable_errors():
        results = put_together(
            directories,
            out,
            models=model or [],
            images=images or [],
            trust_pickle=trust_pickle,
            trust_code=trust_code,
        )
        page = draw(results, out / "report.html")
    end(results, page)
