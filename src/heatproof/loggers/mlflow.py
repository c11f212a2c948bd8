"""MLflow: a run with parameters and metrics, and the table and the report as artifacts; where to, its settings say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import mlflow

from heatproof.loggers._summary import Run

MOST = 1000  # metrics that one request may hold


def log(run: Run) -> None:
    with mlflow.start_run(run_name=run.name):
        mlflow.log_params({name: value[:500] for name, value in run.parameters.items()})
        numbers = iter(run.numbers.items())
        while some := dict(islice(numbers, MOST)):
            mlflow.log_metrics(dict(_allowed(some)))
        mlflow.log_text(run.table.to_csv(index=False), "rankings.csv")
        if run.report is not None:
            mlflow.log_artifact(str(run.report))


def _allowed(numbers: dict[str, float]) -> Iterator[tuple[str, float]]:
    """Names of metrics may hold letters, digits, underscores, dashes, dots, spaces, colons and slashes."""
    for name, value in numbers.items():
        yield re.sub(r"[^\w\-. :/]", "_", name)[:250], value
