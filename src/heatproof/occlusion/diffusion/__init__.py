"""Removed pixels drawn again by a diffusion model: denoisers, noise schedules, samplers and inpainting."""
