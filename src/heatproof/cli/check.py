"""`check`: runs the conformance kit on a component."""

from __future__ import annotations

from typing import Annotated

import typer

from heatproof.cli._terminal import COMPLETE, FAILED_ROWS, echo, readable_errors


def check(
    name: Annotated[
        str, typer.Argument(help="A method, metric, imputer, segmenter, data set or model, or file.py:Name.")
    ],
) -> None:
    """Check a component with the conformance kit and list what holds."""
    from heatproof import registry, testing
    from heatproof.spec.parse import parse
    from heatproof.types import Metric

    with readable_errors():
        if ".py:" in name:
            component = parse("method", name)
            known = registry.name_of(component)
            kind = known[0] if known else "metric" if isinstance(component, Metric) else "method"
            verdicts = list(testing.check_component(kind, component))
        else:
            verdicts = testing.check(name)
    for verdict in verdicts:
        echo(f"{'ok  ' if verdict.holds else 'FAIL'}  {verdict.claim}{'' if verdict.holds else ': ' + verdict.why}")
    raise typer.Exit(COMPLETE if all(verdict.holds for verdict in verdicts) else FAILED_ROWS)
