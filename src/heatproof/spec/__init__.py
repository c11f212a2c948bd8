"""A study as text and as data: parsed, stored, replayed."""
