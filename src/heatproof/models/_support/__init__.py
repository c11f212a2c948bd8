"""What several model loaders share: weights, activation layers, outputs."""
