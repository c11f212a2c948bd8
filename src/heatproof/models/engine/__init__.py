"""Fast passes through a network: forwards and input gradients, in micro-batches of one fixed size.

How large, in which memory layout and by which back-end is found out by a short measurement and remembered.
Every micro-batch has one size, or a part of it at which rows were seen to get the same bits; the last is filled up
with copies. So a row's result does not depend, to the last bit, on which rows came with it. A run that must give the
same bits when resumed keeps `choices()` and hands them to `use()`.
"""

from heatproof.models.engine.choice import REFERENCE, Choice, choices, forget, readable, use
from heatproof.models.engine.device import pick
from heatproof.models.engine.passes import at_once, batch_size, forward, gradient, micro_batches, settled
from heatproof.models.engine.plan import Kind, Plan, foreign
from heatproof.models.engine.setting import EngineKind, Settings, configure, current, kind, settings
from heatproof.models.engine.threads import cores, free_cores, idle_cores, side_by_side, threads_for

__all__ = [
    "REFERENCE",
    "Choice",
    "EngineKind",
    "Kind",
    "Plan",
    "Settings",
    "at_once",
    "batch_size",
    "choices",
    "configure",
    "cores",
    "current",
    "foreign",
    "forget",
    "forward",
    "free_cores",
    "gradient",
    "idle_cores",
    "kind",
    "micro_batches",
    "pick",
    "readable",
    "settings",
    "settled",
    "side_by_side",
    "threads_for",
    "use",
]
