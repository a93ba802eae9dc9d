"""Certificates for the tests of TLS, made by the command openssl."""

import shutil
import subprocess
from pathlib import Path

import pytest


def make_certificate(folder: Path, name: str = "server") -> tuple[Path, Path]:
    """The files of a new certificate for this machine, and of its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("TLS is not tested: the command openssl, which makes certificates, is missing")
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    command = [
        openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext",
        "subjectAltName=IP:127.0.0.1,DNS:localhost", "-out", certificate, "-keyout", key,
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key
