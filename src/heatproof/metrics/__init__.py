"""How a heatmap is judged: one number per image."""
