"""The nouns: the types that all of heatproof takes and returns. A user-defined component needs only these."""

from heatproof.outputs import read
from heatproof.questions import Readout
from heatproof.types.batch import Batch, View, check_images, check_maps, keyed_seed
from heatproof.types.components import (
    AnyMethod,
    ConceptMethod,
    Cost,
    Dataset,
    Imputer,
    Method,
    Metric,
    Price,
    Segmenter,
)
from heatproof.types.model import Model, check_answer, check_network
from heatproof.types.scored import REMOVED, Attribution, Curve, Reason, Scored
from heatproof.types.tensors import Images, Keep, Logits, Maps, Scores, Segments

__all__ = ["Batch", "View", "check_images", "check_maps", "keyed_seed"]
__all__ += ["AnyMethod", "ConceptMethod", "Cost", "Dataset", "Imputer", "Method", "Metric", "Price", "Segmenter"]
__all__ += ["Model", "Readout", "check_answer", "check_network", "read"]
__all__ += ["REMOVED", "Attribution", "Curve", "Reason", "Scored"]
__all__ += ["Images", "Keep", "Logits", "Maps", "Scores", "Segments"]
