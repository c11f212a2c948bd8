"""A run that is killed at any moment, again and again, ends with the very numbers of one that was left alone."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from networks import small_cnn

from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import HeatproofError
from heatproof.results import Results
from heatproof.run import store
from heatproof.run.loop import run
from heatproof.spec.study import Study
from heatproof.types import Batch, Model


def bright(model: Model, batch: Batch) -> Any:
    time.sleep(0.01)  # else there is hardly a moment to be killed in
    return batch.images.mean(1)


def question() -> Study:
    return Study([small_cnn()], [TwoFactor(count=12)], [bright, "random"], ["mif(points=5)", "lif(points=5)"], shard=2)


def killed(out: Path, units: int, seconds: float) -> None:
    """Run in another process, and kill it some time after it has finished so many units."""
    seen, tells = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(seen)
            store.SOON = 0.0  # each unit is written at once
            run(question(), out, watch=lambda *_: os.write(tells, b"."))
        finally:
            os._exit(0)
    os.close(tells)
    for _ in range(units):
        os.read(seen, 1)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(seen)


def scores(results: Results) -> pd.DataFrame:
    return results.scores.drop(columns="seconds")


def kills(count: int, home: Path) -> None:
    """Kill runs at random moments, four times each, then let them end."""
    right = scores(run(question(), home / "right"))
    draw = random.Random(0)
    for at in range(count):
        out = home / f"run {at // 4}"
        killed(out, draw.randrange(25), draw.uniform(0, 0.05))
        try:
            pd.testing.assert_frame_equal(scores(Results.load(out)), right, check_exact=True)
        except HeatproofError as error:
            assert "run the same command again" in str(error) or "no run.json" in str(error)  # noqa: PT017
        if at % 4 == 3:
            pd.testing.assert_frame_equal(scores(run(question(), out)), right, check_exact=True)


def test_a_few_random_kills(tmp_path: Path) -> None:
    kills(8, tmp_path)


@pytest.mark.slow
def test_300_random_kills(tmp_path: Path) -> None:
    kills(300, tmp_path)
