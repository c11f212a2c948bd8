"""Imputers, one per file: they fill in the pixels that are hidden."""
