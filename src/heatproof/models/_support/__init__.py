"""Machinery that several model loaders share: weights, CAM layers, outputs."""
