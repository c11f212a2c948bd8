"""Run information: what is written is read again, older files are read, and what no run wrote is refused by name."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from invented_run import invent, with_info

from heatproof.errors import BadInput
from heatproof.report.page import page
from heatproof.report.run_numbers import Reading
from heatproof.results import protocol_notes
from heatproof.results.run_info import run_info
from heatproof.storage.sealed_json import Damaged

FORMER = Path(__file__).parent.parent / "spec" / "former"
NOTES = {
    "pixel_flipping": protocol_notes.PixelFlippingNotes,
    "threshold_free": protocol_notes.ThresholdFreeNotes,
    "mosaics": protocol_notes.MosaicsNotes,
    "in_distribution": protocol_notes.InDistributionNotes,
    "relative_importance": protocol_notes.RelativeImportanceNotes,
}


def test_what_is_written_is_read_again() -> None:
    info = invent(["net"], [str(i) for i in range(8)]).info
    assert run_info(json.loads(json.dumps(info.plain()))) == info


def test_unknown_fields_of_a_later_version_are_left_out() -> None:
    known = {"metrics": {"srg": {"higher_is_better": False}}}
    assert run_info({**known, "weather": "fine"}) == run_info(known)
    assert run_info(known).metric("srg").higher_is_better is False
    assert run_info(known).metric("mif").higher_is_better is None  # never guessed


def test_an_error_names_the_field_and_what_to_do() -> None:
    with pytest.raises(Damaged, match=r"here is not .*`bool`.*methods.*control.*run the same command again"):
        run_info({"methods": {"lrp": {"control": "yes"}}}, "here")


@pytest.mark.parametrize("file", sorted(FORMER.glob("*.json")), ids=lambda file: file.stem)
def test_studies_stored_by_earlier_versions_are_read_with_their_notes(file: Path) -> None:
    stored = json.loads(file.read_bytes())
    info = run_info({"studies": stored["studies"]})
    assert [study.model_names for study in info.studies] == [
        [model["spec"] for model in study["models"]] for study in stored["studies"]
    ]
    for study, before in zip(info.studies, stored["studies"], strict=True):
        if study.protocol:
            noted = study.noted(NOTES[study.protocol])
            assert list(noted.main or ()) == before["notes"]["main"]


def test_the_variant_of_a_strategy_was_stored_under_another_name() -> None:
    setups = [
        {"imputer": "mean", "n_superpixels": 25, "asked": words, "mif": f"mif{words}"} for words in ("", "8 draws")
    ]
    info = run_info({"studies": [{"protocol": "pixel_flipping", "notes": {"setups": setups}}]})
    assert [one.variant for one in protocol_notes.strategies_of(info)] == ["", "8 draws"]


FORGED: list[tuple[str, dict[str, Any]]] = [
    ("pixel_flipping", {"setups": 3}),
    ("pixel_flipping", {"setups": [{"imputer": "mean"}]}),
    ("pixel_flipping", {"donors": []}),
    ("mosaics", {"grid": 0}),
    ("mosaics", {"plans": {"two_factor": 3}}),
    ("in_distribution", {"audit": {"srg": "tau"}}),
    ("relative_importance", {"accuracy": {"object": 1}}),
    ("relative_importance", {"part": "series", "series": {"net": {"with_object": "x"}}}),
    ("relative_importance", {"clusters": {"a": 1}}),
    ("relative_importance", {"metrics": {"mcs": 1}}),
]


@pytest.mark.parametrize(("protocol", "notes"), FORGED)
def test_notes_that_no_protocol_wrote_are_refused_in_a_sentence(protocol: str, notes: dict[str, Any]) -> None:
    run = invent(["net"], [str(i) for i in range(8)])
    metrics = {"metrics": {**run.info.plain()["metrics"], "srg": {"name": "mosaic_f1", "higher_is_better": True}}}
    study = {"protocol": protocol, "notes": notes, "models": [{"spec": "net"}]}
    forged = with_info(run, studies=[study], protocols=[protocol], **metrics)
    with pytest.raises(BadInput, match=f"notes of {protocol}"):
        page(Reading(forged))


def test_an_accuracy_that_could_not_be_measured_is_a_hole() -> None:
    assert math.isnan(protocol_notes.SeriesPoint(1, None, 0.5).drop)
