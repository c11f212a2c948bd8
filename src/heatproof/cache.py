"""Where things that can be made again are kept: drawn pictures, exported networks, measured batch sizes."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_dir


def cache_directory() -> Path:
    """The user's cache directory for heatproof; the environment variable HEATPROOF_CACHE names another."""
    return Path(os.environ.get("HEATPROOF_CACHE") or user_cache_dir("heatproof"))
