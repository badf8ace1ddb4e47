"""The exception that ends the threads of a run that is decided."""


class Unwound(BaseException):
    """Raised in the threads of a run that is decided, so that they end."""
