"""The `Stripe-Signature` header: HMAC-SHA256 over `t.body`, on the raw bytes."""

import hashlib
import hmac


def header(body: bytes, secret: str, moment: int) -> str:
    signed = str(moment).encode() + b"." + body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return f"t={moment},v1={digest}"
