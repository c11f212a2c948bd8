"""The cache of things that can be made again: drawn pictures, exported networks, measured batch sizes.

Every entry is sealed: a hash over its name and content precedes the content. A damaged entry, or one filed under
another's name, is detected on reading and made again. A seal is not a signature: anyone who can write to the directory
can seal anything.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_cache_dir

log = logging.getLogger("heatproof")
VARIABLE = "HEATPROOF_CACHE"


def cache_directory() -> Path:
    """The user's cache directory for heatproof; the environment variable HEATPROOF_CACHE names another."""
    return Path(os.environ.get(VARIABLE) or user_cache_dir("heatproof"))


@contextmanager
def empty_cache() -> Iterator[Path]:
    """A context with an empty, temporary cache directory; forked processes share it."""
    before = os.environ.get(VARIABLE)
    with tempfile.TemporaryDirectory(prefix="heatproof-", ignore_cleanup_errors=True) as folder:
        os.environ[VARIABLE] = folder
        try:
            yield Path(folder)
        finally:
            if before is None:
                del os.environ[VARIABLE]
            else:
                os.environ[VARIABLE] = before


def seal(name: bytes, content: bytes) -> bytes:
    """The hash of content together with its name."""
    return hashlib.sha256(hashlib.sha256(name).digest() + content).digest()


def sealed(name: bytes, content: bytes) -> bytes:
    """Content as it is stored under a name: the seal, then the content."""
    return seal(name, content) + content


def unsealed(name: bytes, kept: bytes) -> bytes | None:
    """The content sealed under this name; None, with a warning, if the seal does not match."""
    size = hashlib.sha256().digest_size
    if kept[:size] == seal(name, kept[size:]):
        return kept[size:]
    label = name.decode() if name.isascii() else name.hex()[:16]
    log.warning("%s: damaged or misplaced in the cache %s, so it is made again", label, cache_directory())
    return None


def kept(path: Path) -> bytes | None:
    """The content of a sealed file in the cache; None if it is missing or its seal is broken."""
    with contextlib.suppress(OSError):
        os.utime(path)  # marks it as used: the least recently used are evicted first
        return unsealed(path.name.encode(), path.read_bytes())
    return None


def keep(path: Path, content: bytes, first: bool = False) -> bytes:
    """Seals content in a file, whole or not at all; returns the content that is then stored.

    With `first`, a sound file that another process wrote meanwhile stays. If the cache cannot be written to, the only
    cost is doing the work again.
    """
    draft = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
            draft = Path(file.name)
            file.write(sealed(path.name.encode(), content))
        if first and (not path.exists() or kept(path) is not None):
            path.hardlink_to(draft)
        else:
            draft.replace(path)
    except FileExistsError:
        return kept(path) or content
    except OSError as error:
        log.info("%s was not kept in the cache: %s", path.name, error)
    finally:
        if draft is not None:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
    return content
