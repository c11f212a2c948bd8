"""What every command shares: options, the progress bar, errors as sentences, exit statuses."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from heatproof.duration import duration
from heatproof.printable import printable

if TYPE_CHECKING:
    from heatproof.results import Results
    from heatproof.run.pace import Pace, Progress

COMPLETE, FAILED_ROWS, BAD_USAGE, INTERRUPTED = 0, 1, 2, 130

Out = Annotated[Path, typer.Option("--out", "-o", help="Directory for rows and report, or s3://…; run again to go on.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
Workers = Annotated[
    str, typer.Option(help="Processes side by side, a shard of pictures each; auto: as many as pay.", metavar="N|auto")
]
On = Annotated[str, typer.Option("--on", help="Executor: local, ray (a cluster), or one of a plug-in.")]
Gpus = Annotated[
    float | None,
    typer.Option(
        "--gpus-per-worker", help="With --on ray: the share of a GPU of each worker, such as 0.5 [1 on GPUs]."
    ),
]
Log = Annotated[
    str | None,
    typer.Option("--log", help="Also write what was found to a tracker: wandb, mlflow or tensorboard."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a line; names and notes in it come from files and cannot steer the terminal."""
    typer.echo(printable(text), err=err, nl=nl)


def line(text: object, *, err: bool = False) -> None:
    """Print one line, whatever the names in it hold: a line break in a file name is shown, not obeyed."""
    typer.echo(printable(text, keep=""), err=err)


def show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """A Python warning as one line; what it names comes from files, too."""
    kind = "" if category is UserWarning else f" ({category.__name__})"
    line(f"heatproof: warning{kind}: {message}", err=True)


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Callable[[int, int, str], None] | None]:
    """A bar with rate and time left on a terminal; nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[rate]}"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("preparing", total=None, rate="")

        def watch(done: int, total: int, what: str) -> None:
            speed = bar.tasks[0].speed
            rate = f"{speed:.1f} units/s" if speed else ""
            bar.update(
                task, completed=done, total=total, description=printable(what, keep="")[:40].ljust(40), rate=rate
            )

        yield watch


@contextmanager
def run_display(quiet: bool) -> Iterator[Pace | None]:
    """The display of a run: the estimate as a line; on a terminal bars, one for each protocol, with the time left."""
    if quiet:
        yield None
        return
    from heatproof.run.pace import Pace

    with ExitStack() as stack:
        bars = stack.enter_context(_bars()) if sys.stderr.isatty() else None

        def show(now: Progress) -> None:
            if now.phase == "judging" and not now.done and pace.expected is not None:
                line(f"This takes about {duration(pace.expected)}, as measured on one picture.", err=True)
            if bars is not None:
                bars(now)

        pace = Pace(show)
        yield pace


@contextmanager
def work_bars(sentence: str) -> Iterator[Callable[[Progress], None]]:
    """Bars for work that is not kept; where there is no terminal, a sentence."""
    if not sys.stderr.isatty():
        line(sentence, err=True)
        yield lambda progress: None
        return
    with _bars() as show:
        yield show


@contextmanager
def _bars() -> Iterator[Callable[[Progress], None]]:
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[left]}"),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("preparing", total=None, left="")
        tasks: dict[str, progress.TaskID] = {}

        def show(now: Progress) -> None:
            what = now.label if now.phase == "judging" and now.label else f"{now.phase} {now.label}"
            left = "" if now.seconds_left is None else f"{duration(now.seconds_left)} left"
            wide = printable(what, keep="")[:40].ljust(40)
            bar.update(task, completed=now.done, total=now.total or None, description=wide, left=left)
            for name, (done, total) in now.protocols.items() if len(now.protocols) > 1 else ():
                if name not in tasks:
                    tasks[name] = bar.add_task(f"  {name}"[:40].ljust(40), total=total, left="")
                bar.update(tasks[name], completed=done)

        yield show


@contextmanager
def readable_errors() -> Iterator[None]:
    """Our own errors are sentences for a person, and so is a file that is in the way: print, leave with status 2."""
    from heatproof.errors import HeatproofError, OutOfMemory

    try:
        yield
    except HeatproofError as error:
        usage(str(error))
    except MemoryError as error:
        usage(str(OutOfMemory.during(f"({type(error).__name__})")))
    except RuntimeError as error:
        if "out of memory" in str(error) or "DefaultCPUAllocator" in str(error):  # torch's own; it may not be loaded
            usage(str(OutOfMemory.during(f"({str(error)[:120]})")))
        raise
    except OSError as error:
        if error.filename is not None:
            usage(f"{error.filename} cannot be read or written: {error.strerror}")
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO):
            usage(f"the disk takes no more: {error.strerror}; free some space or choose another place")
        raise


def usage(sentence: str) -> NoReturn:
    """Say what was wrong with the words, and leave."""
    line(f"heatproof: {sentence}", err=True)
    raise typer.Exit(BAD_USAGE)


def warn_of_state(results: Results) -> None:
    """Say that these results are of a part, or not of the last run in their directory, if they are not."""
    if stopped := results.info.stopped:
        line(f"The run was stopped {stopped}: these are results of that part. Its command goes on with it.", err=True)
    if results.later:
        state = "failed" if results.later == "failed" else "has not finished, or was killed"
        echo(
            f"These are the results of an earlier run in {results.root}: the last one {state}. Run its command again "
            "for its results.",
            err=True,
        )
