"""How the further numbers of a metric on trial are called."""

MAP = "map: "  # the score of a map of known quality,
NEAR = "near: "  # how near that map is to the truth,
AGAIN = "another seed"  # the score of the same method under another seed,
SETTING = "setting: "  # and under another setting of the metric
