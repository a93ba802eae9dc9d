"""The command line: ``tamis demo``, ``tamis match``, ``tamis explain``."""

from tamis.cli.main import main

__all__ = ["main"]
