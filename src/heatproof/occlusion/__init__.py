"""Occlusion: segmenters cut pictures into parts, imputers fill in what is hidden, and the game evaluates the model."""
