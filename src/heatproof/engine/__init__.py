"""Fast passes through a network: forwards and input gradients, in micro-batches.

An `Engine` chooses the back-end, memory layout and micro-batch size by a short measurement and remembers the choice. A
run owns an engine (`with use(Engine()):`) and records its choices; outside of a run the process has one. Results differ
by float noise (1e-5) between choices, batch mates and orders. With the same choices the same calls give the same bits;
a plan with `fill` does so whatever the batch mates.
"""

from heatproof.engine.autotune import Kind
from heatproof.engine.choice import REFERENCE, Choice
from heatproof.engine.execute import (
    Engine,
    EngineKind,
    Plan,
    at_once,
    batch_size,
    current,
    forward,
    gradient,
    micro_batches,
    settled,
    use,
)
from heatproof.engine.machine import (
    be_worker,
    cores,
    free_cores,
    idle_cores,
    kept_memory,
    pick,
    place,
    side_by_side,
    threads_for,
)

__all__ = ["REFERENCE", "Choice", "Engine", "EngineKind", "Kind", "Plan", "at_once", "batch_size", "be_worker", "cores"]
__all__ += ["current", "forward", "free_cores", "gradient", "idle_cores", "kept_memory", "micro_batches", "pick"]
__all__ += ["place", "settled", "side_by_side", "threads_for", "use"]
