"""Protocols as pure code: bytes in, requests out, and back; nothing here waits or opens sockets."""
