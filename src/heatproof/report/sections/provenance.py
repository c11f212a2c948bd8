"""What was run: methods, metrics, recipes, versions, seeds and times."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from heatproof.report.run_numbers import Reading
from heatproof.report.sections.blocks import fold, section
from heatproof.report.typeset import breakable, count, duration, escape, link_or_text, shortened
from heatproof.results.run_info import ComponentInfo, MethodInfo, MetricInfo, RunInfo

FURTHER = ("edition", "left_out", "machine", "damaged", "stopped", "until")
LONGEST = 60_000  # characters of one recipe; a plan of ten thousand images belongs in the run's own files

C = TypeVar("C", bound=ComponentInfo)


def provenance(reading: Reading) -> str | None:
    """Facts in a list, then everything else behind folds."""
    info, stored = reading.info, reading.info.plain()
    body = _facts(info)
    body += _components("Methods", reading.methods, info.methods, _nature_of_method)
    body += _components("Metrics", reading.metrics, info.metrics, _nature_of_metric)
    for at, study in enumerate(stored["studies"], start=1):
        body += fold(f"Recipe {at}" if len(info.studies) > 1 else "Recipe", _json(study))
    if info.engine:
        body += fold("Engine", _json(info.engine))
    further = {name: stored[name] for name in FURTHER if stored[name]}
    if further:
        body += fold("Further notes", _json(further))
    lead = "The same recipe and seed give the same numbers again."
    return section(
        "provenance", "What was run", lead, body, picture=_figures(reading), named="Recipe, components, versions"
    )


def _figures(reading: Reading) -> str:
    """How much there is of everything."""
    contestants = [method for method in reading.methods if not reading.is_control(method)]
    scores = reading.scores
    beside = int((scores["status"] == "not_applicable").sum())
    sizes = {
        "method": len(contestants),
        "image": int(scores[["dataset", "image"]].drop_duplicates().shape[0]),
        "model": len({model for _, model in reading.settings}),
        "metric": len(reading.metrics),
        "score": len(scores),
    }
    facts = [(noun if size == 1 else f"{noun}s", count(size)) for noun, size in sizes.items()]
    facts += [("missing", count(int((scores["status"] != "ok").sum()) - beside))]
    facts += [("not applicable", count(beside))] * bool(beside)
    met = [entry.accuracy.share for entry in reading.info.pictures if entry.accuracy]
    if len(met) == 1:
        facts.append(("of the model’s answers correct", f"{100 * met[0]:.0f} %"))
    if reading.info.seconds is not None:
        facts.append(("time", duration(reading.info.seconds)))
    cells = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
    return f'<dl class="figures">{cells}</dl>'


def _facts(info: RunInfo) -> str:
    seeds = sorted({str(study.seed) for study in info.studies})
    facts = {
        "started": info.started,
        "took": "" if info.seconds is None else duration(info.seconds),
        "protocols": ", ".join(info.protocols),
        "seed" if len(seeds) == 1 else "seeds": ", ".join(seeds[:12]),
        "engine": info.engine_kind,
        **info.versions,
    }
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(shortened(value, 200))}</dd></div>"
        for name, value in facts.items()
        if value
    )
    return f'<dl class="facts">{items}</dl>' if items else ""


def _components(title: str, labels: Sequence[str], known: Mapping[str, C], nature: Callable[[C | None], str]) -> str:
    rows = []
    for label in dict.fromkeys([*labels, *known]):
        entry = known.get(label)
        about = entry or ComponentInfo()
        paper = link_or_text(about.paper) if about.paper else ""
        full = f"<br><code>{breakable(about.label)}</code>" if about.label not in ("", label) else ""
        hides = f"<br>Hides {escape(about.hides)}." if about.hides else ""
        rows.append(
            f"<tr><th scope='row'>{escape(label)}{full}</th><td>{escape(about.summary)}{hides}</td>"
            f"<td>{nature(entry)}</td><td>{paper}</td></tr>"
        )
    if not rows:
        return ""
    return fold(title, f'<div class="scroll"><table class="components"><tbody>{"".join(rows)}</tbody></table></div>')


def _nature_of_method(method: MethodInfo | None) -> str:
    if method is None:
        return ""
    nature = ["control"] if method.control else ["signed"] if method.signed else []
    return ", ".join([*nature, *(["numerically unstable"] if method.unstable else [])])


def _nature_of_metric(metric: MetricInfo | None) -> str:
    if metric is None or metric.higher_is_better is None:
        return ""
    return "higher is better" if metric.higher_is_better else "lower is better"


def _json(value: Any) -> str:
    written = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    cut = f"\n… {len(written) - LONGEST} further characters" if len(written) > LONGEST else ""
    return f"<pre>{escape(written[:LONGEST] + cut)}</pre>"
