"""A study as words and as data: what is typed, what is stored, what is replayed."""
