"""The record of a run under way: the directory is its own until the end, and however it ends, `run.json` says so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from heatproof.results.run_state import Record, known
from heatproof.run import lock
from heatproof.run.commit import commit_finished
from heatproof.run.edition import warn_of_edition
from heatproof.run.rounds import Course
from heatproof.run.shards import Shard
from heatproof.run.share import Share
from heatproof.run.store import Store
from heatproof.run.termination import sigterm_as_ctrl_c
from heatproof.run.until import Solid, dump
from heatproof.spec.study import Study


@contextmanager
def recording(
    studies: Sequence[Study], work: Sequence[Shard], store: Store, extent: Solid | Share | None, course: Course | None
) -> Iterator[Record]:
    """Hold the directory, store the study, and keep the record true: of a run that is stopped its part is committed."""
    with lock.held(store.root) as alone, sigterm_as_ctrl_c():
        if alone:
            store.clear_leftovers()
        warn_of_edition(store)
        resumed = any(store.failed(key, shard.ids) is not None for shard in work for key in shard.units.values())
        record = Record(store.root, resumed or _begun(store, dump(studies, extent)))
        if not record.state.results:  # else it belongs to those results until there are others
            store.put_json("study.json", dump(studies, extent))
        try:
            yield record
            if alone:
                store.clear_leftovers()  # of parts that were set aside
        except KeyboardInterrupt:
            commit_finished(studies, work, store, record, course, extent if isinstance(extent, Share) else None)
            raise
        except BaseException as error:
            with suppress(Exception):  # the disk may be what failed
                record.write("failed", reason=str(error)[:500])
            raise


def _begun(store: Store, studies: Mapping[str, Any]) -> bool:
    """Whether this very study was begun here and not finished: time spent before the first unit counts, too."""
    before = known(store.root)
    if before is None or before.state == "complete" or before.results:
        return False
    return bool(store.get_json("study.json") == json.loads(json.dumps(studies)))
