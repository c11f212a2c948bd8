"""Threshold-free localisation: what size, threshold and normalising rule do to the ranking by AUC-IoU."""

from __future__ import annotations

from heatproof.report.run_numbers import Reading
from heatproof.report.sections import section_of
from heatproof.report.sections.blocks import section, unfolding
from heatproof.report.sections.mask_quality import mask_quality
from heatproof.report.sections.normalising_rules import normalising_rules
from heatproof.report.sections.premises import apart, rightness
from heatproof.report.sections.ranking import panel_chart
from heatproof.report.sections.size_strata import size_strata
from heatproof.report.sections.threshold_choice import threshold_choice
from heatproof.report.typeset import counted, escape, number
from heatproof.results.protocol_notes import FittedTemperature, ThresholdFreeNotes

SHOWN = 2  # data sets and models in full; further ones are behind a fold
PROTOCOL = "threshold_free"


@section_of("threshold_free")
def threshold_free(reading: Reading) -> str | None:
    """One part per data set and model that was judged by AUC-IoU under this protocol."""
    label = main_metric(reading)
    if label is None:
        return None
    pieces = []
    for panel in reading.panels:
        if panel.metric != label or reading.contenders(panel).empty:
            continue
        notes = notes_of(reading, panel.model)
        parts = (
            size_strata(reading, panel, notes.strata),
            threshold_choice(reading, panel, paper=notes.area == "paper"),
            normalising_rules(reading, panel, notes.rules),
            mask_quality(reading, panel),
            apart(reading, panel),
        )
        name = f"{panel.model} on {panel.dataset}"
        heading = f"<h3>{escape(name)}</h3>{_temperature(notes.temperature)}"
        pieces.append((name, f'<div class="metric">{heading}{"".join(part for part in parts if part)}</div>'))
    if not pieces:
        return None
    first = next(panel for panel in reading.panels if panel.metric == label and not reading.contenders(panel).empty)
    return section(
        PROTOCOL,
        "Without a threshold",
        "AUC-IoU asks how well the hot pixels cover the true region at every threshold at once.",
        unfolding(pieces, SHOWN),
        picture=panel_chart(reading, first),
        opened=rightness(reading, [panel for panel in reading.panels if panel.metric == label]),
        rest=_rest(reading, label),
        named="By size, threshold and rule",
    )


def main_metric(reading: Reading) -> str | None:
    """The AUC-IoU the protocol ranks by: the first that was named."""
    return next((label for label in reading.metrics if reading.info.metric(label).name == "auc_iou"), None)


def notes_of(reading: Reading, model: str) -> ThresholdFreeNotes:
    """The protocol's own settings for a model, as the run stored them."""
    studies = reading.info.of_protocol(PROTOCOL)
    found = (study.noted(ThresholdFreeNotes) for study in studies if model in study.model_names)
    return next(found, ThresholdFreeNotes())


def _rest(reading: Reading, label: str) -> str:
    areas = {notes_of(reading, panel.model).area for panel in reading.panels if panel.metric == label}
    shown = (
        "Shown is the published area, at most 0.9: set against an IoU it is first divided by that."
        if areas == {"paper"}
        else "Shown is the mean height of the curve of IoU over thresholds, the published area divided by "
        "0.9: 1 is perfect, and it compares with an IoU."
    )
    return (
        f"{shown} "
        'The curves themselves are under <a href="#curves">Curves</a>, the pairwise tests under '
        '<a href="#significance">What is solid, what is noise</a>.'
    )


def _temperature(fit: FittedTemperature | str) -> str:
    if isinstance(fit, FittedTemperature):
        words = (
            f"LIME reads probabilities of logits divided by T = {number(fit.value)}, fitted on "
            f"{counted(fit.pictures, 'held-out picture')}: mean confidence "
            f"{number(fit.confidence_before)} → {number(fit.confidence_after)} at an "
            f"accuracy of {number(fit.accuracy)}."
        )
        if fit.unlabelled:
            words += f" Left out: {counted(fit.unlabelled, 'picture')} without a class of the model."
        if fit.doubt:
            words += f" This temperature may mean nothing: {fit.doubt}."
    elif fit:
        words = f"No temperature was fitted for methods that read probabilities: {fit}."
    else:
        return ""
    return f'<p class="note">{escape(words)}</p>'
