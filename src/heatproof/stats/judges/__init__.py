"""The judges judged, in numbers: a card for every metric, from its scores of maps of known quality."""
