"""A metric on trial within a run: beside its own scores, those of maps of known quality, as further numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from heatproof.attribute import attribute
from heatproof.audit.judges.bench import Bench, variants
from heatproof.audit.judges.graded_maps import Truth, digest
from heatproof.audit.judges.ladders import ladder_of
from heatproof.errors import HeatproofError
from heatproof.methods.controls import Oracle
from heatproof.registry import find
from heatproof.registry import metric as registered
from heatproof.spec import recipe
from heatproof.stats.judges.on_trial_names import AGAIN, MAP, NEAR, SETTING
from heatproof.traits import Measures, Need, metric_traits
from heatproof.types import AnyMethod, Attribution, Metric, Scored


@registered
@dataclass(frozen=True)
class OnTrial:
    """A metric, with what it says of maps of known quality beside its score.

    The scores are the metric's own. Where the map is that of `truth`, further numbers are the scores of the truth
    degraded by known doses, of noise, of the inverse, and of maps that see no model; of all other methods, the score
    under another seed and under other settings of the metric.
    """

    metric: Metric = field(default_factory=lambda: find("metric", "relevance_mass"))
    truth: AnyMethod = field(default_factory=Oracle)

    @property
    def label(self) -> str:
        return f"{recipe.label(self.metric)} on trial"

    @property
    def higher_is_better(self) -> bool:
        return self.metric.higher_is_better

    @property
    def measures(self) -> Measures:
        return metric_traits(self.metric).measures

    @property
    def needs(self) -> tuple[Need, ...]:
        return metric_traits(self.metric).needs

    @property
    def axes(self) -> tuple[str, ...]:
        return metric_traits(self.metric).axes

    def __call__(self, attribution: Attribution, /) -> Scored:
        answer: Any = self.metric(attribution)
        own = answer if isinstance(answer, Scored) else Scored(answer)
        is_truth = recipe.label(attribution.explainer) == recipe.label(self.truth)
        further = self._graded(attribution) if is_truth else self._again(attribution)
        return replace(own, details={**own.details, **further})

    def _graded(self, attribution: Attribution) -> dict[str, Tensor]:
        """Scores of all maps of the ladder, and how near each is to the truth."""
        shown = self._bench(attribution).rungs(ladder_of(self.measures))
        found = {}
        for source, one, near in zip(shown.sources, shown.attributions, shown.closeness, strict=True):
            found[f"{MAP}{source.name}"] = _values(self.metric, one)
            found[f"{NEAR}{source.name}"] = torch.from_numpy(near)
        return found

    def _bench(self, attribution: Attribution) -> Bench:
        """The bench of these pictures; that of the latest ones is kept with the model, for the other metrics."""
        model, batch = attribution.model, attribution.batch
        shown = tuple(digest(one) for one in batch.images)
        key = (recipe.key(self.truth), model.revision, batch.ids, shown, tuple(batch.targets.tolist()), batch.seed)
        kept: dict[object, Bench] = vars(model).setdefault("_bench", {})
        if key not in kept:
            kept.clear()
            kept[key] = Bench(Truth(self.truth), {}, model, batch, draws=0, others=False)
        return kept[key]

    def _again(self, attribution: Attribution) -> dict[str, Tensor]:
        """Scores under another seed, of the method and the metric, and under other settings of the metric."""
        batch = replace(attribution.batch, seed=attribution.batch.seed + 1)
        found = {AGAIN: _values(self.metric, attribute(attribution.model, batch, attribution.explainer))}
        for name, other in variants(self.metric):
            found[f"{SETTING}{name}"] = _values(other, attribution)
        return found


def _values(metric: Metric, attribution: Attribution) -> Tensor:
    """The scores; NaN where the metric does not apply."""
    try:
        answer: Any = metric(attribution)
    except HeatproofError:
        return torch.full((len(attribution.batch),), torch.nan, dtype=torch.float64)
    values: Tensor = answer.values if isinstance(answer, Scored) else answer
    return values.detach().cpu().double()
