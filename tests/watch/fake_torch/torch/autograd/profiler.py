class record_function:
    """A range of the profiler, which does nothing here."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        pass
