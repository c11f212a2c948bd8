"""TensorBoard: scalars, the parameters as hyperparameters, and the table as text, in the run's directory."""

from __future__ import annotations

from torch.utils.tensorboard import SummaryWriter  # type: ignore[attr-defined]

from heatproof.loggers._summary import Run

FOLDER = "tensorboard"


def log(run: Run) -> None:
    with SummaryWriter(str(run.directory / FOLDER)) as writer:
        for name, value in run.numbers.items():
            writer.add_scalar(name.replace(" ", "_"), value)
        writer.add_text("run", "\n".join(f"* {name}: {value}" for name, value in run.parameters.items()))
        writer.add_text("rankings", run.table.to_html(index=False))
