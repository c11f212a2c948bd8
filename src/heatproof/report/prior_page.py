"""The page on a trained prior: its loss curve, and what it draws."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from importlib.resources import files

from heatproof.report.charts import Line, curves
from heatproof.report.typeset import counted, escape


def prior_page(name: str, steps: int, minutes: float, losses: Sequence[tuple[int, float]], samples: bytes) -> str:
    """One HTML file; `samples` is a PNG of four rows of pictures."""
    style = (files("heatproof.report") / "style.css").read_text(encoding="utf-8")
    line = Line("loss", [step for step, _ in losses], [loss for _, loss in losses], colour=0)
    chart = curves([line], title="Loss over steps", x_label="steps", y_label="loss") if losses else ""
    picture = f"data:image/png;base64,{b64encode(samples).decode()}"
    words = (
        "From the top: pictures that it did not learn from; half of their blocks removed; these drawn again from pure "
        "noise; samples from nothing."
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(name)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style></head>'
        "<body><main><section>"
        f"<h1>A prior of {escape(name)}</h1><p>{counted(steps, 'step')}, {minutes:g} minutes. The loss is the squared "
        "error of the velocity, the mean of 100 steps: where it still falls, more steps help.</p>"
        f'<figure>{chart}</figure><figure><figcaption>{words}</figcaption><img src="{picture}" alt="{words}" '
        'style="width:100%;image-rendering:pixelated"></figure></section></main></body></html>\n'
    )
