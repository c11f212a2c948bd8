"""Several small charts side by side, each with its caption."""

from __future__ import annotations

from collections.abc import Sequence

from heatproof.report.typeset import escape


def small_multiples(charts: Sequence[tuple[str, str]]) -> str:
    """A grid of (caption, chart): as many columns as fit. Captions are escaped, charts are not."""
    figures = "".join(
        f"<figure>{f'<figcaption>{escape(caption)}</figcaption>' if caption else ''}{chart}</figure>"
        for caption, chart in charts
    )
    return f'<div class="multiples">{figures}</div>'
