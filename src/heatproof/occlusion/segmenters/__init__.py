"""Segmenters, one per file: they cut a picture into the parts that come and go together."""
