"""Who explains: a file per family, each method a frozen dataclass called as `method(model, batch) -> maps`."""
