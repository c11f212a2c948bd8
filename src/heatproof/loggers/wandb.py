"""Weights & Biases: a run with its configuration, means as a summary, the table, and the report as an artifact."""

from __future__ import annotations

import os

import wandb

from heatproof.loggers._summary import Run


def log(run: Run) -> None:
    with wandb.init(
        project=os.environ.get("WANDB_PROJECT", "heatproof"),
        name=run.name,
        config=run.parameters,
        dir=str(run.directory),
    ) as one:
        one.summary.update(run.numbers)
        one.log({"rankings": wandb.Table(dataframe=run.table)})
        if run.report is not None:
            artifact = wandb.Artifact("report", type="report")
            artifact.add_file(str(run.report))
            one.log_artifact(artifact)
