"""The context of TLS, and what is wrong with its files."""

import ssl
import subprocess

import pytest

from certificates import make_certificate
from tamis.broker.network_settings import NetworkSettings
from tamis.broker.settings import Address, Settings, TlsFiles
from tamis.broker.tls import load_certificate, peer_context, server_context
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


def test_links_are_encrypted_if_there_is_an_authority(tmp_path):
    certificate, key = make_certificate(tmp_path)
    files = TlsFiles(certificate, key)
    plain = NetworkSettings("a", Address("127.0.0.1", 1), {})
    trusting = NetworkSettings("a", Address("127.0.0.1", 1), {}, authority=certificate)
    for network, tls in ((None, files), (plain, files), (trusting, None)):
        settings = Settings(data=tmp_path, network=network, tls=tls)
        assert peer_context(settings, is_caller=True) is None
    for is_caller in (True, False):
        settings = Settings(data=tmp_path, network=trusting, tls=files)
        context = peer_context(settings, is_caller=is_caller)
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert len(context.get_ca_certs()) == 1
