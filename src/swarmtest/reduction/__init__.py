"""Making tests smaller while they stay interesting."""

from swarmtest.reduction.galloping import minimised

__all__ = ["minimised"]
