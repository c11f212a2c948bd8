"""Files that are wholly there or not there, sealed, and read with a limit on memory."""
