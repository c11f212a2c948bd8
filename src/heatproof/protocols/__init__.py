"""What each paper prescribes: a protocol makes studies."""
