"""The ten objects and ten scenes of BAM; a class's index is its place in the alphabet."""

OBJECTS: tuple[str, ...] = (
    "backpack",
    "bird",
    "dog",
    "elephant",
    "kite",
    "pizza",
    "stop_sign",
    "toilet",
    "truck",
    "zebra",
)
SCENES: tuple[str, ...] = (
    "bamboo_forest",
    "bedroom",
    "bowling_alley",
    "bus_interior",
    "cockpit",
    "corn_field",
    "laundromat",
    "runway",
    "ski_slope",
    "track",
)
FIRST_VALIDATION = 900  # of the thousand instances of a class the last hundred are held out
