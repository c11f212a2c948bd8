"""Inpainting of removed pixels by diffusion models: denoisers, noise schedules, samplers."""
