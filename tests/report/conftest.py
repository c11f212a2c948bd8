"""What the tests of the report share."""

from __future__ import annotations

import pytest
from invented_run import HOSTILE, invent

from heatproof.results import Results


@pytest.fixture(scope="session")
def invented_run() -> Results:
    images = [HOSTILE, *(f"{index:05d}" for index in range(1, 40))]
    return invent(["embedded:object", "embedded:object_plain"], images)


@pytest.fixture(scope="session")
def small_run() -> Results:
    """Enough for tests that do not look at the page."""
    return invent(["embedded:object"], [HOSTILE, *(f"{index:05d}" for index in range(1, 9))])
