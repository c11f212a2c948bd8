"""What was run: methods, metrics, recipes, versions, seeds and times."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from heatproof.report.run_numbers import Reading
from heatproof.report.sections.blocks import fold, section
from heatproof.report.typeset import breakable, duration, escape, link_or_text, shortened

LONGEST = 60_000  # characters of one recipe; a plan of ten thousand images belongs in the run's own files


def provenance(reading: Reading) -> str | None:
    """Facts in a list, then everything else behind folds."""
    info = reading.info
    body = _facts(info)
    body += _components(reading, "methods", "Methods")
    body += _components(reading, "metrics", "Metrics")
    studies = info.get("studies") or []
    listed = studies if isinstance(studies, list | tuple) else [studies]
    for at, study in enumerate(listed, start=1):
        body += fold(f"Recipe {at}" if len(listed) > 1 else "Recipe", _json(study))
    known = {
        "studies",
        "versions",
        "started",
        "seconds",
        "engine",
        "engine_kind",
        "protocols",
        "metrics",
        "methods",
        "pictures",
    }
    rest = {key: value for key, value in info.items() if key not in known}
    if info.get("engine"):
        body += fold("Engine", _json(info["engine"]))
    if rest:
        body += fold("Further notes", _json(rest))
    return section("provenance", "What was run", "The same recipe and seed give the same numbers again.", body)


def _facts(info: Mapping[str, Any]) -> str:
    facts: list[tuple[str, str]] = []
    if info.get("started"):
        facts.append(("started", str(info["started"])))
    if isinstance(info.get("seconds"), int | float):
        facts.append(("took", duration(float(info["seconds"]))))
    if info.get("protocols"):
        facts.append(("protocols", ", ".join(map(str, info["protocols"]))))
    seeds = sorted({str(seed) for seed in _seeds(info.get("studies"))})
    if seeds:
        facts.append(("seed" if len(seeds) == 1 else "seeds", ", ".join(seeds[:12])))
    if info.get("engine_kind"):
        facts.append(("engine", str(info["engine_kind"])))
    versions = info.get("versions")
    if isinstance(versions, Mapping):
        facts += [(str(name), str(version)) for name, version in versions.items()]
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(shortened(value, 200))}</dd></div>" for name, value in facts
    )
    return f'<dl class="facts">{items}</dl>' if items else ""


def _seeds(value: Any) -> list[Any]:
    """Every study's own seed: the top-level `seed` of each recipe."""
    studies = value if isinstance(value, list | tuple) else [value]
    found = []
    for study in studies:
        if isinstance(study, Mapping):
            fields = study.get("fields", study)
            if isinstance(fields, Mapping) and "seed" in fields:
                found.append(fields["seed"])
    return found


def _components(reading: Reading, kind: str, title: str) -> str:
    entries = reading.info.get(kind) or {}
    labels = reading.methods if kind == "methods" else reading.metrics
    rows = []
    for label in dict.fromkeys([*labels, *entries]):
        entry = entries.get(label, {})
        paper = link_or_text(str(entry["paper"])) if entry.get("paper") else ""
        if kind == "methods":
            nature = "control" if entry.get("control") else "signed" if entry.get("signed") else ""
            nature += f"{', ' * bool(nature)}numerically unstable" if entry.get("unstable") else ""
        else:
            nature = "higher is better" if entry.get("higher_is_better", True) else "lower is better"
        whole = str(entry.get("label", label))
        hides = f"<br>Hides {escape(str(entry['hides']))}." if entry.get("hides") else ""
        full = f"<br><code>{breakable(whole)}</code>" if whole != label else ""
        rows.append(
            f"<tr><th scope='row'>{escape(label)}{full}</th><td>{escape(entry.get('summary') or '')}{hides}</td>"
            f"<td>{nature}</td><td>{paper}</td></tr>"
        )
    if not rows:
        return ""
    return fold(title, f'<div class="scroll"><table class="components"><tbody>{"".join(rows)}</tbody></table></div>')


def _json(value: Any) -> str:
    written = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    cut = f"\n… {len(written) - LONGEST} further characters" if len(written) > LONGEST else ""
    return f"<pre>{escape(written[:LONGEST] + cut)}</pre>"
