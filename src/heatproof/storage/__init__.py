"""Files that are wholly there or not there, sealed, and read no further than is wanted."""
