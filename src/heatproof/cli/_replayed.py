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
    """The scores beside a stored study, for the comparison with the scores of its replay."""

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
        # The studies of the file itself: the code it names was checked or trusted before.
        return cls(file, before.scores, study_file.read(study), list(before.info.methods), trust_code)

    def apart(self, results: Results, studies: list[Any]) -> str:
        from heatproof.errors import HeatproofError
        from heatproof.spec import recipe, replay

        names: dict[str, dict[str, str]] = {"dataset": {}, "model": {}, "method": {}}
        # Unequal numbers of methods mean scores of another run. Names are paired by place: they may hold a path.
        if len(self.methods) == len(results.info.methods):
            names["method"] = dict(zip(self.methods, results.info.methods, strict=True))
        for stored, study in zip(self.studies, studies, strict=True):
            names["model"] |= {then["spec"]: now.name for then, now in zip(stored["models"], study.models, strict=True)}
            for then, now in zip(stored["datasets"], study.datasets, strict=True):
                with suppress(HeatproofError):  # registered in another file only: it keeps its old name
                    names["dataset"][recipe.label(recipe.build(then, trust_code=self.trust_code))] = recipe.label(now)
        unstable = [label for label, about in results.info.methods.items() if about.unstable]
        return str(replay.compared(self.scores, results.scores, names, self.file, unstable))
