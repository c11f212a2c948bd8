"""What several data sets share: reading files, pictures, masks and class names."""
