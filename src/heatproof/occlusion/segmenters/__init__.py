"""How a picture is cut into the parts that come and go together, one segmenter per file."""
