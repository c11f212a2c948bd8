"""The report's sections. Each is a function of a `Reading` that gives HTML, or None where it does not apply.

`SECTIONS` holds the sections of single protocols by protocol name; they stand between the curves and the
gallery when the run's info names the protocol.
"""

from collections.abc import Callable

from heatproof.report.reading import Reading
from heatproof.report.sections.in_distribution import in_distribution
from heatproof.report.sections.mosaics import mosaics
from heatproof.report.sections.pixel_flipping import pixel_flipping
from heatproof.report.sections.relative_importance import relative_importance
from heatproof.report.sections.robustness import robustness
from heatproof.report.sections.sanity import sanity
from heatproof.report.sections.threshold_free import threshold_free

Section = Callable[[Reading], str | None]

SECTIONS: dict[str, Section] = {
    "in_distribution": in_distribution,
    "mosaics": mosaics,
    "pixel_flipping": pixel_flipping,
    "relative_importance": relative_importance,
    "robustness": robustness,
    "sanity": sanity,
    "threshold_free": threshold_free,
}
