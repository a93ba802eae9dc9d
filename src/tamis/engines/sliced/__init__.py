"""The sliced engine: 512 events at once, a bit an event."""

from tamis.engines.sliced.engine import SlicedEngine

__all__ = ["SlicedEngine"]
