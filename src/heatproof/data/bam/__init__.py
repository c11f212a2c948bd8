"""BAM (Yang & Kim 2019) on disk: its published layout, its masks read safely, and a seeded builder."""
