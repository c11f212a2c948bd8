"""What the section on re-drawn pictures says of its prior."""

from types import SimpleNamespace
from typing import Any

import pytest

from heatproof.report.sections.in_distribution import _stranger


@pytest.mark.parametrize(
    ("prior", "datasets", "warned"),
    [
        ("embedded", [{"dataset": "two_factor", "fields": {}}], False),
        ("embedded", [{"dataset": "folder", "fields": {}}], True),
        ("embedded", [{"class": "mine:Pictures", "fields": {}}], True),
        ("diffusers:lesions", [{"dataset": "folder", "fields": {}}], False),
    ],
)
def test_a_prior_that_never_saw_such_pictures_is_told(prior: str, datasets: list[Any], warned: bool) -> None:
    reading: Any = SimpleNamespace(info={"studies": [{"notes": {"prior": prior}, "datasets": datasets}]})
    assert ("never seen such pictures" in _stranger(reading)) == warned
