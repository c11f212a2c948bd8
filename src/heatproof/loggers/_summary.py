"""What trackers are given of a run: flat numbers by name, plain parameters, the ranking table, the report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from heatproof.results import Results, tables


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run, as trackers take it."""

    name: str
    directory: Path
    parameters: dict[str, str]
    numbers: dict[str, float]  # `metric/method` -> mean, with the model and data set before it where there are several
    table: pd.DataFrame
    report: Path | None


def summarised(results: Results, out: Path) -> Run:
    """The parts of a run that trackers show."""
    table = tables.rankings(results)
    several = len(results.settings) > 1
    numbers = {}
    for row in table.to_dict("records"):
        place = f"{row['model']} on {row['dataset']}/" if several else ""
        for field, name in {"mean": "", "low": " low", "high": " high"}.items():
            if pd.notna(row[field]):
                numbers[f"{place}{row['metric']}/{row['method']}{name}"] = float(row[field])
    parameters = {
        "models": ", ".join(dict.fromkeys(model for _, model in results.settings)),
        "datasets": ", ".join(dict.fromkeys(dataset for dataset, _ in results.settings)),
        "protocols": ", ".join(results.info.protocols),
        "pictures": str(results.scores["image"].nunique()),
        "complete": str(results.complete),
        "commit": results.commit,
    }
    report = out / "report.html"
    return Run(out.name, out, parameters, numbers, table, report if report.is_file() else None)
