"""All protocols in one breath: every one that applies to what was given, with one line-up of methods."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from heatproof import registry
from heatproof.errors import BadInput, HeatproofError
from heatproof.protocols._support.given import Datasets, Methods, Models, missing
from heatproof.protocols._support.line_up import line_up
from heatproof.protocols._support.own_pictures import check_model_named
from heatproof.registry import protocol
from heatproof.spec.parse import parse
from heatproof.spec.study import Study
from heatproof.traits import protocol_traits

Preset = Literal["common", "paper"]


@protocol
@dataclass(frozen=True)
class All:
    """Every protocol that applies to the models and pictures, with one line-up of methods in all of them.

    `common` judges each method in one configuration everywhere, on the same number of pictures, with fewer noisy
    copies and randomised layers where a protocol has many. `paper` keeps each paper's own variants and settings.
    Protocols that do not apply are left out, and the run says what they would need. With neither models nor pictures,
    every protocol takes its own embedded ones.
    """

    preset: Preset = "common"
    pictures: int = 32  # of each data set, at most; the paper's own number with preset="paper"

    def __post_init__(self) -> None:
        if self.pictures < 1:
            raise BadInput(f"pictures must be at least 1, got {self.pictures}")

    def studies(self, models: Models = None, datasets: Datasets = None, methods: Methods = None) -> list[Study]:
        """The studies of every protocol that applies; the notes of the first name the others."""
        check_model_named(models, datasets)
        named = [parse("method", each) if isinstance(each, str) else each for each in methods or ()]
        found: list[Study] = []
        left_out: dict[str, str] = {}
        for name, one in self.protocols():
            reason = missing(protocol_traits(one), models, datasets)
            if not reason:
                try:
                    found += self._of(one, models, datasets, named or None)
                except HeatproofError as error:
                    reason = str(error)
            if reason:
                left_out[name] = reason
        if not found:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
            raise BadInput(f"no protocol applies to these models and pictures: {reasons}")
        found[0] = dataclasses.replace(found[0], notes={**found[0].notes, "left_out": left_out})
        return found

    def protocols(self) -> list[tuple[str, Any]]:
        """Every other protocol by name, set up for the preset, in order."""
        made = []
        for name in registry.names("protocol"):
            make = registry.entry("protocol", name).make
            if make is not All:
                one = make()
                traits = protocol_traits(one)
                if traits.apart:
                    continue
                fields = dict(traits.paper if self.preset == "paper" else traits.brief)
                made.append((traits.order, name, registry.find("protocol", name, **fields)))
        return [(name, one) for _, name, one in sorted(made, key=lambda item: item[:2])]

    def _of(
        self,
        one: Any,
        models: Models,
        datasets: Datasets,
        methods: Methods,
    ) -> list[Study]:
        if self.preset == "paper":
            made: list[Study] = one.studies(models=models, datasets=datasets, methods=methods)
            return made
        made = one.studies(models=models, datasets=datasets, methods=methods or line_up())
        return [dataclasses.replace(study, limit=min(study.limit or self.pictures, self.pictures)) for study in made]
