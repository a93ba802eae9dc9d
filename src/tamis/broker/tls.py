"""TLS: the context of all listeners, made from two PEM files."""

import ssl
from pathlib import Path

from tamis.broker.settings import Settings, TlsFiles
from tamis.errors import FileError


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """A context with a certificate and its key, for TLS 1.2 and later."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_certificate(context, files)
    return context


def peer_context(settings: Settings, *, is_caller: bool) -> ssl.SSLContext | None:
    """The context of links between brokers: both sides show a certificate of the authority.

    None if the settings name no authority: then links are not encrypted.
    """
    network, files = settings.network, settings.tls
    if network is None or network.authority is None or files is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT if is_caller else ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    load_certificate(context, files)
    load_authority(context, network.authority)
    return context


def load_authority(context: ssl.SSLContext, authority: Path) -> None:
    """Trust an authority, and those that were trusted before: nobody is locked out meanwhile."""
    try:
        context.load_verify_locations(authority)
    except OSError as error:  # errors of TLS among them
        raise FileError(
            f"the authority {authority} cannot be used: {error}; it is a PEM file of certificates"
        ) from None


def check_authority(authority: Path) -> None:
    """Raise a `FileError` if an authority cannot be used."""
    load_authority(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), authority)


def load_certificate(context: ssl.SSLContext, files: TlsFiles) -> None:
    """Read the files again: later connections get what they say now.

    If they cannot be used, an error is raised and the context stays as it was.
    """
    try:
        # Reading into a context that nobody uses finds out whether all of it is right.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*files, password=_no_password)
        context.load_cert_chain(*files, password=_no_password)
    except ssl.SSLError as error:
        reason = (error.reason or str(error)).replace("_", " ").lower()
        raise FileError(
            f"the certificate {files.certificate} and the key {files.key} cannot be used: "
            f"{reason}; both are PEM files, and the key is that of the first certificate"
        ) from None
    except OSError as error:
        raise FileError(
            f"the certificate {files.certificate} or the key {files.key} cannot be read: "
            f"{error.strerror}"
        ) from None


def _no_password() -> str:
    raise FileError(
        "the key of the certificate is encrypted, and nobody is there to type its password; "
        "write it without one: openssl pkey -in KEY -out NEWKEY"
    )
