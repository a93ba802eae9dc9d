"""What events of the past look like, in a file of moderate size."""

from tamis.profiles.profile import Limits, Profile

__all__ = ["Limits", "Profile"]
