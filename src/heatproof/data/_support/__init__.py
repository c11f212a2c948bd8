"""Shared by several data sets: reading files, pictures, masks and class names."""
