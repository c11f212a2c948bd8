"""How much memory a run takes: the loop with ten times the pictures, and the gathering of many rows.

    python benchmarks/memory.py

Each case runs in a process of its own; what is printed is its peak resident memory in MB.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path


def loop(pictures: int) -> None:
    """Judge two methods by one metric on so many small pictures."""
    import torch

    from heatproof.data.two_factor.dataset import TwoFactor
    from heatproof.run.loop import run
    from heatproof.spec.study import Study
    from heatproof.types import Model

    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, stride=4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(10)
    ).eval()
    data = TwoFactor(count=pictures)
    network(data.batch([0]).images)
    with tempfile.TemporaryDirectory() as out:
        run(Study([Model("small", network)], [data], ["random", "edges"], ["auroc"]), out)


def gathering(rows: int) -> None:
    """Store so many rows, half of them with curves of 50 points, and write their tables."""
    from heatproof.run import parts
    from heatproof.run.columns import Unit
    from heatproof.run.store import Store
    from heatproof.run.tables import write_tables

    parts.HELD = 2**24  # so that what is held of unpacked parts is the same in small and large cases
    shard = 16
    places = [
        {"dataset": "d", "model": "m", "method": f"method {i % 12}", "metric": f"metric {i % 30}"} for i in range(360)
    ]
    line = [i / 50 for i in range(50)]

    def ids(at: int) -> tuple[str, ...]:
        return tuple(f"folder/picture_{at}_{i}.jpg" for i in range(shard))

    with tempfile.TemporaryDirectory() as out:
        store = Store(Path(out))
        for at in range(rows // shard):
            lines = [line] * shard if at % 2 else None
            store.put(f"{at:032}", Unit(ids(at), [0.5] * shard, ["ok"] * shard, [""] * shard, 0.1, lines, lines))
        store.flush()
        write_tables(store, ((places[at % 360], f"{at:032}", ids(at)) for at in range(rows // shard)))


CASES = [("loop", 500), ("loop", 5_000), ("gathering", 24_000), ("gathering", 240_000)]
WORK = {"loop": loop, "gathering": gathering}


def _high_water() -> int:
    """The most memory this process had, in kB; `ru_maxrss` would count what its parent had too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def peak(work: str, size: int) -> int:
    """The peak resident memory of a process that does this, in MB."""
    command = [sys.executable, __file__, work, str(size)]
    return int(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1])


if __name__ == "__main__":
    if len(sys.argv) == 3:
        WORK[sys.argv[1]](int(sys.argv[2]))
        print(_high_water() // 1024)
    else:
        for name, amount in CASES:
            print(
                f"{name:10} {amount:8,} {'pictures' if name == 'loop' else 'rows':9} {peak(name, amount):6} MB",
                flush=True,
            )
