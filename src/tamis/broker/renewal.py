"""Renewal: what a broker reads again, while it runs, when SIGHUP comes.

Accounts, grants and limits are those of the file from then on, and certificates are used for the
connections to come. What else the file says counts after a restart, and is named in the log. A file
that is wrong changes nothing.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from dataclasses import fields

from tamis.broker.broker import Broker
from tamis.broker.settings import Settings, TlsFiles
from tamis.broker.stomp.service import StompService
from tamis.broker.tls import check_authority, load_authority, load_certificate
from tamis.errors import OptionError, TamisError

_LOG = logging.getLogger(__name__)
RENEWED = ("accounts", "limits", "tls", "network")  # of the network, the authority


class Renewal:
    """Reads settings again, and lets a broker and its connections have them."""

    def __init__(self, settings: Settings, read: Callable[[], Settings]) -> None:
        self._settings = settings
        self._read = read
        self._broker: Broker | None = None
        self._stomp: StompService | None = None
        self._for_clients: list[ssl.SSLContext] = []
        self._for_peers: list[ssl.SSLContext] = []
        self._task: asyncio.Task[None] | None = None
        self._again = False

    def of(self, broker: Broker, stomp: StompService) -> None:
        """Set the broker, and those who are connected to it."""
        self._broker, self._stomp = broker, stomp

    def renew_context(self, context: ssl.SSLContext | None, *, for_peers: bool = False) -> None:
        """Remember a context of TLS, unless it is None."""
        if context is not None:
            (self._for_peers if for_peers else self._for_clients).append(context)

    def soon(self) -> None:
        """Read all again, after what is being read now."""
        if self._task is not None and not self._task.done():
            self._again = True
            return
        self._task = asyncio.create_task(self._renew_all(), name="tamis renewal")

    async def _renew_all(self) -> None:
        self._again = True
        while self._again:
            self._again = False
            try:
                await self.renew()
            except TamisError as error:
                _LOG.error("the settings stay as they are", extra={"reason": str(error)})
            except Exception:  # noqa: BLE001 - the broker goes on with what it has, the log has it
                _LOG.exception("the settings stay as they are")

    async def renew(self) -> None:
        """Read all again; raises a `TamisError` if something is wrong, and nothing has changed."""
        new = await asyncio.to_thread(self._read)
        new.check_exposure()
        before = self._settings
        if (new.tls is None) != (before.tls is None):
            raise OptionError("TLS can be switched on or off by a restart only")
        files = self._checked_files(new)
        if self._broker is not None and self._stomp is not None:
            changed = await self._broker.change_accounts(new)
            self._stomp.end(changed)
        self._settings = new
        if files is not None:
            self._load(files, new)
        later = [
            field.name
            for field in fields(Settings)
            if field.name not in RENEWED and getattr(new, field.name) != getattr(before, field.name)
        ]
        if later:
            _LOG.warning("these settings count after a restart: %s", ", ".join(later))
        _LOG.info("the settings were read again")

    def _checked_files(self, new: Settings) -> TlsFiles | None:
        """The files of TLS, if all of them can be used."""
        if new.tls is None:
            return None
        load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), new.tls)
        if new.network is not None and new.network.authority is not None:
            check_authority(new.network.authority)
        return new.tls

    def _load(self, files: TlsFiles, new: Settings) -> None:
        for context in (*self._for_clients, *self._for_peers):
            load_certificate(context, files)
        if new.network is not None and new.network.authority is not None:
            for context in self._for_peers:
                load_authority(context, new.network.authority)
        _LOG.info("the certificate was read again", extra={"file": str(files.certificate)})
