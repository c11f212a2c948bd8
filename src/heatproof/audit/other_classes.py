"""What natural pictures look like to the model beside those that are evaluated: a reference for the energy score."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch

from heatproof import recipe
from heatproof.data import in_grey
from heatproof.data.pictures import takes_grey
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput, NotApplicable
from heatproof.methods.baselines import background, crowd
from heatproof.models import engine
from heatproof.occlusion.shown import Samples
from heatproof.types import Attribution, Dataset, Model


@dataclass(frozen=True)
class OtherClasses:
    """No evaluation but a reference for them: beside each picture, whole ones that the model takes for another class.

    Nothing was removed from these, and still their energy differs. They are drawn by image out of up to a hundred
    pictures spread over the data set, whoever shares the batch.
    """

    pictures: Dataset = field(default_factory=TwoFactor)
    count: int = 9  # as many as an evaluation has levels

    follows_map: ClassVar[bool] = False
    changes_pictures: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.count < 1:
            raise BadInput(f"count of other_classes must be at least 1, got {self.count}")

    def recipe(self) -> dict[str, object]:
        """The pictures and what they show: any of the data set may be drawn, whichever are evaluated."""
        fields = {"pictures": recipe.plain(self.pictures), "count": self.count}
        where = f"{type(self).__module__}:{type(self).__qualname__}"
        return {"class": where, "fields": fields, "revision": self.pictures.digest(crowd(len(self.pictures)))}

    def samples(self, attribution: Attribution, /) -> Samples:
        """Other pictures, of which none of the original is left."""
        model, batch = attribution.model, attribution.batch
        every, names = background(_seen_by(model, self.pictures), batch.images)
        classes = engine.forward(model, every).argmax(1).tolist()
        rows = []
        for name, target, dice in zip(batch.ids, batch.targets.tolist(), batch.generators("other class"), strict=True):
            others = [at for at, met in enumerate(classes) if met != target and names[at] != name]
            if not others:
                raise NotApplicable(
                    f"no picture of the data set is of another class than {target} to {model.name}: "
                    "there is nothing to compare energies with"
                )
            rows.append([others[at] for at in torch.randint(len(others), (self.count,), generator=dice).tolist()])
        chosen = torch.tensor(rows, dtype=torch.int64, device=every.device).view(-1, self.count)
        return Samples(every[chosen], torch.ones(chosen.shape, dtype=torch.float64))


def _seen_by(model: Model, pictures: Dataset) -> Dataset:
    """The pictures cut the way the model wants them, and grey if it looks at no more."""
    seen = in_grey(pictures) if takes_grey(model) else pictures
    if hasattr(seen, "fitted"):  # one made of other data sets knows itself
        return seen.fitted(model)  # type: ignore[no-any-return]
    return replace(seen, view=model.view) if getattr(seen, "view", ...) is None else seen  # type: ignore[type-var]
