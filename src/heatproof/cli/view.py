"""`view`: a folder of runs in the browser, on this machine only."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from heatproof.cli._terminal import echo, line, readable_errors, usage


def view(
    directory: Annotated[Path, typer.Argument(help="A folder of runs, or a run.")] = Path("runs"),
    port: Annotated[int, typer.Option(help="0 takes a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """List runs, open their reports and compare two of them, in the browser. It ends with Ctrl-C."""
    from heatproof.report.view import Viewer

    with readable_errors():
        try:
            server = Viewer(directory, port)
        except OSError as error:
            usage(f"port {port} cannot be used ({error.strerror}): choose another, or 0 for a free one")
    echo(server.address)
    line("Only this machine can see it. Ctrl-C ends it.", err=True)
    if browser:
        webbrowser.open(server.address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
