"""The sliced engine: 512 events at once, one bit per event.

Filters come in and become leaves (`leaves`, `filter_reader`), then references to distinct
predicates (`interning`), which are laid out (`layout`) as a segment (`segment`). Events come in,
and `blocks` finds the handles of the filters that match them.
"""

from tamis.engines.sliced.engine import SlicedEngine

__all__ = ["SlicedEngine"]
