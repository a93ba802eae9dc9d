"""The command line: one module per command, such as ``tamis match``."""

from tamis.cli.main import main

__all__ = ["main"]
