"""`verify`: checks that the files of a run are intact."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heatproof.cli._terminal import COMPLETE, FAILED_ROWS, echo, readable_errors


def verify(directory: Annotated[Path, typer.Argument(help="A directory that a run wrote.")]) -> None:
    """Check every file of a run against its seal or hash; changes nothing. Exit status 1 if something is wrong."""
    from heatproof.results import run_state
    from heatproof.run import verify
    from heatproof.storage.any_path import folder

    with readable_errors():
        findings = list(verify.check(folder(directory)))
        state = run_state.known(folder(directory))
    wrong = [finding for finding in findings if finding.problem]
    for finding in wrong:
        echo(f"{finding.file} {finding.problem}")
    checked = f"{len(findings)} files checked"
    if wrong:
        echo(f"{checked}, {len(wrong)} of them with problems. Run the same command again: {HEALS}")
        raise typer.Exit(FAILED_ROWS)
    outcome = f"the run is {state.state}" if state else "no run"
    echo(f"{checked}, all intact; {outcome}.")
    raise typer.Exit(COMPLETE)


HEALS = "it keeps what is sound, computes what is damaged anew, and removes leftovers."
