"""What several metrics share: neighbours of a picture, randomised models, similarities of maps, undefined scores."""
