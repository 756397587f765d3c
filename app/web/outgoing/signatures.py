"""Signs what is posted, in the form of Standard Webhooks."""

import hmac
from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256


def signed_headers(keys: Iterable[bytes], id: str, body: bytes, now_s: int) -> Mapping[str, str]:
    """Return the headers by which a receiver knows the message and its sender.

    The id is the same for all attempts. Receivers refuse times that are more than minutes away.
    """
    signed = b"%b.%d.%b" % (id.encode(), now_s, body)
    signatures = [b64encode(hmac.digest(key, signed, sha256)).decode() for key in keys]
    return {
        "webhook-id": id,
        "webhook-timestamp": str(now_s),
        "webhook-signature": " ".join(f"v1,{each}" for each in signatures),
    }
