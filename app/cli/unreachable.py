"""Why a server cannot be reached, and advice on what to do about it."""

import os
from collections.abc import Iterator
from ssl import SSLCertVerificationError, SSLError


def unreachable(url: str, error: Exception) -> str:
    """Return why a server cannot be reached, and what to do about it."""
    if does_not_trust(error):
        return (
            f"{url} cannot be reached: this machine does not trust its certificate: set "
            "SSL_CERT_FILE to its authority's certificate"
        )
    advice = "set its address with --url or HOLDFAST_URL"
    if url.startswith("http:") and was_closed(error):
        advice += ", or, if it uses TLS, write https://"
    elif _is_caused_by(error, SSLError):
        advice += ", or, if it does not use TLS, write http://"
    return (
        f"{url} cannot be reached ({reason(error)}). Is a server running there? Start one with "
        f"holdfast serve, or {advice}"
    )


def reason(error: Exception) -> str:
    """Why there was no response."""
    for each in _causes(error):
        if isinstance(each, TimeoutError):
            return "no answer"
        if isinstance(each, SSLError):
            return "the TLS handshake failed"
        if isinstance(each, OSError) and each.strerror:
            # The system's text has no address in it; failed look-ups of names have other numbers.
            return os.strerror(each.errno) if each.errno and each.errno > 0 else each.strerror
    return str(error) or type(error).__name__


def is_nobody_there(error: Exception) -> bool:
    """Return whether no connection was made: nothing listens there, or the address is unknown."""
    # Commands that talk to no server need not wait until it is loaded.
    from aiohttp import ClientConnectorError

    return _is_caused_by(error, ClientConnectorError)


def does_not_trust(error: Exception) -> bool:
    """Return whether a certificate is the reason."""
    return _is_caused_by(error, SSLCertVerificationError)


def was_closed(error: Exception) -> bool:
    """Return whether a connection was closed without an answer."""
    from aiohttp import ServerDisconnectedError

    return _is_caused_by(error, ServerDisconnectedError, ConnectionResetError)


def _is_caused_by(error: Exception, *kinds: type[Exception]) -> bool:
    return any(isinstance(each, kinds) for each in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
