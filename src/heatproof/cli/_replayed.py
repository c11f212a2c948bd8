"""The first run beside a stored study, for the comparison that ends a replay."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heatproof.cli._terminal import echo

if TYPE_CHECKING:
    import pandas as pd

    from heatproof.results import Results


@dataclass(frozen=True)
class FirstRun:
    """The scores beside a stored study, to be told how far those of its replay are from them."""

    file: Path
    scores: pd.DataFrame
    studies: list[dict[str, Any]]
    methods: list[str]
    trust_code: bool

    @classmethod
    def beside(cls, study: Path, trust_code: bool) -> FirstRun | None:
        from heatproof.errors import HeatproofError
        from heatproof.results import Results
        from heatproof.spec import study_file

        file = study.with_name("scores.parquet")
        if study.suffix == ".py" or not file.is_file():
            return None
        try:
            before = Results.load(study.parent)
        except HeatproofError as error:
            echo(f"The replay cannot be compared with its first run: {error}", err=True)
            return None
        # The studies of the file itself: what it names was checked, or trusted.
        return cls(file, before.scores, study_file.read(study), list(before.info["methods"]), trust_code)

    def apart(self, results: Results, studies: list[Any]) -> str:
        from heatproof.errors import HeatproofError
        from heatproof.spec import recipe, replay

        names: dict[str, dict[str, str]] = {"dataset": {}, "model": {}, "method": {}}
        if len(self.methods) == len(results.info["methods"]):  # else they are of another run; a name may hold a path
            names["method"] = dict(zip(self.methods, results.info["methods"], strict=True))
        for stored, study in zip(self.studies, studies, strict=True):
            names["model"] |= {one["spec"]: now.name for one, now in zip(stored["models"], study.models, strict=True)}
            for one, now in zip(stored["datasets"], study.datasets, strict=True):
                with suppress(HeatproofError):  # known to another file only: then it is called what it was
                    names["dataset"][recipe.label(recipe.build(one, trust_code=self.trust_code))] = recipe.label(now)
        unstable = [label for label, about in results.info["methods"].items() if about.get("unstable")]
        return str(replay.compared(self.scores, results.scores, names, self.file, unstable))
