"""Pictures in memory, in every form people have them: the same batch, whatever handed them out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from networks import SmallCNN, small_cnn
from PIL import Image
from torch.utils.data import DataLoader, TensorDataset

import heatproof
from heatproof.data._support.picture_groups import groups_of
from heatproof.errors import BadInput
from heatproof.types import Dataset, View

BYTES = np.random.default_rng(0).integers(0, 256, (5, 12, 10, 3), dtype=np.uint8)
FLOATS = torch.from_numpy(BYTES).permute(0, 3, 1, 2).float() / 255
LABELS = [0, 1, 2, 1, 0]


class Handed:
    """A torch Dataset in spirit: whatever it is made to hand out."""

    def __init__(self, item: Any) -> None:
        self.item = item

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> Any:
        if index >= 5:
            raise IndexError
        return self.item(index)


FORMS = {
    "tensor": FLOATS,
    "bytes, channels last": BYTES,
    "bytes, channels first": BYTES.transpose(0, 3, 1, 2),
    "pil": [Image.fromarray(one) for one in BYTES],
    "tuples": Handed(lambda i: (FLOATS[i], LABELS[i])),
    "mappings": Handed(lambda i: {"image": Image.fromarray(BYTES[i]), "label": LABELS[i]}),
    "torch": TensorDataset(FLOATS, torch.tensor(LABELS)),
    "loader": DataLoader(TensorDataset(FLOATS, torch.tensor(LABELS)), batch_size=2, shuffle=True),
    "generator": ((FLOATS[i], LABELS[i]) for i in range(5)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_data_set(form: str) -> None:
    carries = form not in ("tensor", "bytes, channels last", "bytes, channels first", "pil")
    found = heatproof.pictures(FORMS[form], None if carries else LABELS)
    assert isinstance(found, Dataset)
    batch = found.batch([3, 0])
    torch.testing.assert_close(batch.images, FLOATS[[3, 0]])
    assert batch.labels["label"].tolist() == [1, 0]
    assert batch.ids == ("000003", "000000")
    assert found.class_labels() == tuple(LABELS)
    assert torch.equal(found.batch([3]).images[0], batch.images[0])


def test_the_digest_is_of_the_content() -> None:
    one, two = heatproof.pictures(FLOATS, LABELS), heatproof.pictures(BYTES, LABELS)
    assert one.digest([0, 1]) == two.digest([0, 1])
    assert one.digest([0]) != one.digest([1])
    assert heatproof.pictures(FLOATS, LABELS[::-1]).digest([1]) == one.digest([1])
    assert heatproof.pictures(FLOATS, [9, 1, 2, 1, 0]).digest([0]) != one.digest([0])


def test_masks_groups_and_views() -> None:
    masks = np.zeros((5, 12, 10), dtype=bool)
    masks[:, :6] = True
    found = heatproof.pictures(BYTES, LABELS, masks=masks, groups={"patient": list("aabbc")}, view=8)
    batch = found.batch([0, 1])
    assert batch.images.shape == (2, 3, 8, 8)
    assert batch.regions is not None
    assert batch.regions[:, :4].all()
    assert not batch.regions[:, 4:].any()
    assert batch.labels["region_share"].tolist() == [0.5, 0.5]
    assert groups_of(found)["patient"].labels == ("a", "a", "b", "b", "c")
    assert groups_of(found)["patient"].kind == "sampled"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"images": FLOATS * 4 - 2}, "leave Normalize out"),
        ({"images": FLOATS[0]}, "four axes"),
        ({"images": FLOATS, "labels": [1]}, "labels must be as many as the 5 pictures, got 1"),
        ({"images": FLOATS, "labels": [0.5] * 5}, r"must be a class index, got 0\.5"),
        ({"images": FLOATS, "ids": ["a"] * 5}, "ids must be distinct"),
        ({"images": FLOATS, "groups": {"patient": ["a"]}}, "one group per picture"),
        ({"images": FLOATS, "masks": torch.ones(5, 3, 3)}, "must be 10x12 pixels"),
        ({"images": []}, "got none"),
        ({"images": 7}, "a torch Dataset or DataLoader"),
        ({"images": Handed(lambda i: {"pixels": FLOATS[i]})}, "one of the keys image"),
    ],
)
def test_what_cannot_be_used_is_a_sentence(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        heatproof.pictures(**fields).batch([0])


def test_pictures_of_two_sizes_need_a_view() -> None:
    sizes = [FLOATS[0], FLOATS[1][:, :9, :9]]
    with pytest.raises(BadInput, match="one size unless a view cuts them, got 9x9 and 10x12"):
        heatproof.pictures(sizes).batch([0, 1])
    assert heatproof.pictures(sizes, view=View(8)).batch([0, 1]).images.shape == (2, 3, 8, 8)


def test_a_loader_is_judged_in_one_line(tmp_path: Path) -> None:
    images = torch.rand(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    loader = DataLoader(TensorDataset(images, torch.tensor([0, 1, 2, 3])), batch_size=2)
    network = small_cnn().network
    assert isinstance(network, SmallCNN)
    study = heatproof.Study(
        models=[heatproof.Model("mine", network)],
        datasets=[heatproof.pictures(loader)],
        methods=["saliency", "random"],
        metrics=["srg(points=3)"],
    )
    results = heatproof.run(study, tmp_path / "out")
    assert len(results.ranking("srg(points=3)").table) == 2
    again = heatproof.run(study, tmp_path / "out")  # found by their content
    assert again.scores.equals(results.scores)


def test_mean_and_std_belong_to_a_bare_network() -> None:
    with pytest.raises(BadInput, match="mean and std belong to a bare network"):
        heatproof.judge("embedded:object", FLOATS, mean=(0.5,), std=(0.5,))
