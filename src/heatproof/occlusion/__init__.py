"""How evidence is taken away: segmenters cut, imputers fill in, and the game asks the model."""
