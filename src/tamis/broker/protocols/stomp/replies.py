"""What the server answers: CONNECTED, RECEIPT and ERROR frames."""

from collections.abc import Iterable

from tamis import __version__
from tamis.broker.errors import status_and_code
from tamis.broker.protocols.stomp.frames import VERSIONS, FrameError, escaped, frame_bytes
from tamis.broker.protocols.stomp.header_values import VersionError
from tamis.errors import ExpressionError, TamisError

HEART_BEAT = b"\n"
SERVER = f"tamis/{__version__}"


def connected(version: str, session: str, beats: tuple[int, int]) -> bytes:
    """CONNECTED."""
    headers = [
        ("version", version),
        ("session", session),
        ("server", SERVER),
        ("heart-beat", f"{beats[0]},{beats[1]}"),
    ]
    return frame_bytes("CONNECTED", headers)


def receipts(ids: Iterable[str], version: str | None) -> bytes:
    """The RECEIPT frames for these receipts."""
    return "".join([
        f"RECEIPT\nreceipt-id:{escaped(one, version)}\n\n\0" for one in ids
    ]).encode()  # fmt: skip


def error(problem: TamisError, receipt: str | None, version: str | None) -> bytes:
    """ERROR: the first line of the problem as a header, all of it as the body."""
    text = str(problem)
    code = "bad-frame" if isinstance(problem, FrameError) else status_and_code(problem)[1]
    headers = [("message", text.partition("\n")[0]), ("code", code)]
    if isinstance(problem, VersionError):
        headers.append(("version", ",".join(VERSIONS)))
    if isinstance(problem, ExpressionError):
        headers += [("line", str(problem.line)), ("column", str(problem.column))]
    if receipt is not None:
        headers.append(("receipt-id", receipt))
    headers.append(("content-type", "text/plain"))
    return frame_bytes("ERROR", headers, text.encode(errors="replace"), version)
