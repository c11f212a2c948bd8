"""Where things that can be made again are kept: drawn pictures, exported networks, measured batch sizes.

What lies there is sealed: a hash over the name it is filed under and its content stands before the content. A damaged
file, or a whole one under another's name, is found when it is read and made again. A seal is no signature: whoever may
write to the directory can seal what they like.
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
    """A cache directory for a while that nothing was put into before; forked processes share it."""
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
    """The hash of content filed under a name."""
    return hashlib.sha256(hashlib.sha256(name).digest() + content).digest()


def sealed(name: bytes, content: bytes) -> bytes:
    """Content as it is kept under a name: its seal and itself."""
    return seal(name, content) + content


def unsealed(name: bytes, kept: bytes) -> bytes | None:
    """What was sealed under this name, or None, with a warning, if this is something else."""
    size = hashlib.sha256().digest_size
    if kept[:size] == seal(name, kept[size:]):
        return kept[size:]
    label = name.decode() if name.isascii() else name.hex()[:16]
    log.warning("%s: damaged or misplaced in the cache %s, it is made again", label, cache_directory())
    return None


def kept(path: Path) -> bytes | None:
    """The content of a sealed file in the cache; None where there is none or its seal is broken."""
    with contextlib.suppress(OSError):
        os.utime(path)  # the least recently used go first
        return unsealed(path.name.encode(), path.read_bytes())
    return None


def keep(path: Path, content: bytes, first: bool = False) -> bytes:
    """Seal content in a file, whole or not at all; the content that stands afterwards.

    With `first` a whole file of another process stays. A cache that cannot be written to costs doing the work again, no
    more.
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
