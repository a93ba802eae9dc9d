"""Profiles: what events of the past look like, in a small file.

In: tables or lists of events. Out: a `Profile` that knows how often attributes and values occur,
which attributes occur together, and a sample; profiles can be merged, saved and loaded.
"""

from tamis.profiles.profile import Profile, ProfileLimits

__all__ = ["Profile", "ProfileLimits"]
