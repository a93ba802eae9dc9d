"""The context of TLS, and what is wrong with its files."""

import subprocess

import pytest

from certificates import make_certificate
from tamis.broker.settings import TlsFiles
from tamis.broker.tls import load_certificate, server_context
from tamis.errors import FileError


def test_files_that_cannot_be_used(tmp_path, put):
    certificate, key = make_certificate(tmp_path)
    context = server_context(TlsFiles(certificate, key))
    _, other = make_certificate(tmp_path, "other")
    encrypted = tmp_path / "encrypted.key"
    subprocess.run(
        ["openssl", "pkey", "-in", key, "-aes128", "-passout", "pass:x", "-out", encrypted],  # noqa: S607 - of the system
        check=True,
    )
    for files, message in (
        (TlsFiles(certificate, other), "cannot be used: key values mismatch"),
        (TlsFiles(put("no.pem", "no"), key), r"cannot be used: .*PEM"),
        (TlsFiles(certificate, tmp_path / "nowhere"), "cannot be read: No such file"),
        (TlsFiles(certificate, encrypted), "the key of the certificate is encrypted"),
    ):
        with pytest.raises(FileError, match=message):
            load_certificate(context, files)
