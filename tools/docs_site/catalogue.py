"""The catalogues of the site: a page for each kind of component, with an entry for every registered one."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from heatproof import registry
from heatproof.spec import recipe

KINDS: dict[registry.Kind, tuple[str, str]] = {
    "method": (
        "Methods",
        "Every method that draws a heatmap, with its fields and their defaults, its paper and its price. Fields are "
        'set in brackets: `"integrated_gradients(steps=50)"`.',
    ),
    "metric": (
        "Metrics",
        "Every metric that judges one. [Which metric answers which question](../metrics.md), and "
        "[which can be trusted](../judges.md), have pages of their own.",
    ),
    "imputer": ("Imputers", 'What is painted where a segment is hidden. In metrics: `"srg(telea/slic-30)"`.'),
    "segmenter": ("Segmenters", "How a picture is divided into the segments that are hidden."),
    "dataset": ("Data sets", "Where pictures come from; [Your data](../data.md) shows the folders they expect."),
    "protocol": ("Protocols", "What `--protocols` takes; each has a page under Protocols."),
}
TICK = "`"


def page_name(kind: str) -> str:
    """The page of a kind, relative to the site."""
    return f"catalogue/{kind}s.md"


def page(kind: registry.Kind, pictures: Mapping[str, str] | None = None) -> str:
    """The Markdown page of a kind; `pictures` are addresses of images by component name."""
    title, lead = KINDS[kind]
    names = registry.names(kind)
    index = " · ".join(f"[`{name}`](#{name})" for name in names)
    entries = "\n\n".join(entry(kind, name, (pictures or {}).get(name)) for name in names)
    return f"# {title}\n\n{lead}\n\n{index}\n\n{entries}\n"


def entry(kind: registry.Kind, name: str, picture: str | None = None) -> str:
    """One component: what it is, its picture, its fields, its paper, and what it declares."""
    made = registry.entry(kind, name)
    listed = recipe.listed(made)
    parts = [f"## {TICK}{name}{TICK} {{ #{name} }}"]
    if picture:
        parts.append(f"![A map of {name}]({picture}){{ .map loading=lazy }}")
    parts.append(_prose(made))
    if fields := _fields(listed["fields"]):
        parts.append(fields)
    if facts := _facts(listed):
        parts.append(facts)
    return "\n\n".join(parts)


def _prose(made: Any) -> str:
    """The docstring, its paper in italics."""
    paragraphs = (inspect.getdoc(made.make) or "").split("\n\n")
    return "\n\n".join(f"*{' '.join(one.split())}*" if one.startswith("Paper: ") else one for one in paragraphs)


def _fields(fields: Mapping[str, Any]) -> str:
    if not fields:
        return ""
    rows = "\n".join(f"| `{name}` | `{_short(value)}` |" for name, value in fields.items())
    return f"| field | default |\n|---|---|\n{rows}"


def _short(value: Any) -> str:
    """A default in one line; parts by their names."""
    if isinstance(value, Mapping):
        kind = next(iter(value), "")
        inner = ", ".join(f"{key}={_short(item)}" for key, item in value.get("fields", {}).items())
        text = f"{value.get(kind, '')}({inner})" if inner else str(value.get(kind, ""))
        return text.replace("|", "\\|")
    return "“”" if value == "" else str(value).replace("|", "\\|")


def _facts(listed: Mapping[str, Any]) -> str:
    """What the component declares of itself, one line each."""
    facts = []
    if measures := listed.get("measures"):
        facts.append(f"measures {measures}")
    if listed.get("higher_is_better") is not None and listed.get("measures") != "description":
        facts.append("higher is better" if listed["higher_is_better"] else "lower is better")
    if listed.get("chance") is not None:
        facts.append(f"chance level {listed['chance']:g}")
    if cost := listed.get("cost"):
        facts.append("price per picture: " + ", ".join(f"{value} {name}" for name, value in cost.items() if value))
    if unfit := listed.get("unfit"):
        facts += [f"does not apply to {_question(kind)}: {reason}" for kind, reason in unfit.items()]
    if aliases := listed.get("aliases"):
        facts.append("also known as " + ", ".join(f"`{alias}`" for alias in aliases))
    if listed.get("unstable"):
        facts.append("amplifies floating-point noise")
    return "\n".join(f"* {fact}" for fact in facts if not fact.endswith(": "))


def _question(kind: str) -> str:
    return {"classes": "networks of classes", "yes_no": "a yes or no", "value": "networks that answer with values"}[
        kind
    ]
