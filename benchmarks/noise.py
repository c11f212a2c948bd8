"""Which methods amplify float noise: every method on an embedded model, into src/heatproof/methods/float_noise.json.

    OMP_NUM_THREADS=1 python benchmarks/noise.py [METHOD …]

With names, only these are measured, and the other entries stay.
Methods that bring their own stage, a transformer, are measured there. One that does not apply has no entry and no mark.
"""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

import torch

from heatproof import engine, models, registry
from heatproof.audit.float_noise import float_noise
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput, NotApplicable
from heatproof.spec.parse import parse
from heatproof.stability import FILE, UNSTABLE

PICTURES = 12
PLACE = Path(__file__).parent.parent / "src" / "heatproof" / "methods" / FILE


def main(only: list[str]) -> None:
    """Measure, show and write."""
    model = models.load("embedded:object")
    batch = TwoFactor(count=PICTURES).batch(range(PICTURES))
    batch = batch.aimed(engine.forward(model, batch.images).argmax(1))
    noise: dict[str, float] = json.loads(PLACE.read_text())["methods"] if only else {}
    for name in only or registry.names("method"):
        try:
            method = parse("method", name)
            shown = method.stage() if hasattr(method, "stage") else (model, batch)
            noise[name] = float(f"{float_noise(*shown, method):.2g}")
        except (NotApplicable, BadInput) as reason:  # for transformers only, or without files to read
            print(f"{name:24} not measured: {reason}", flush=True)
            continue
        print(f"{name:24} {noise[name]:.1e} {'unstable' if noise[name] > UNSTABLE else ''}", flush=True)
    about = {
        "what": "the largest relative difference of a map between engines; benchmarks/noise.py wrote this",
        "pictures": PICTURES,
        "torch": torch.__version__,
        "processor": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
    }
    PLACE.write_text(json.dumps({**about, "methods": dict(sorted(noise.items()))}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
