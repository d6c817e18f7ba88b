"""What went wrong with a call to a model, and what a person can do about it.

One table for everybody who tells of calls: the test of a model, `torra doctor`, `torra models`,
Health and the notices. Its words are ours; a vendor's may quote a key.
"""

from __future__ import annotations

from typing import Final

from torra.providers.vendors.addresses import KeySign

REMEDIES: Final = {
    "401": ("the key was refused", "set {key} to a key that is valid, then restart the desk"),
    "402": ("the account has no credit", "add credit at the vendor, then test again"),
    "403": ("the key may not do this", "allow the key to use this model at the vendor"),
    "404": ("there is no such model", "name another model in the profile (docs/models.md)"),
    "429": (
        "the vendor is busy, or the account's quota is used up",
        "wait a minute and test again; if it stays so, look at the quota at the vendor",
    ),
    "timeout": (
        "no answer came within {seconds:.0f} seconds",
        "test again; if it stays so, look at the network and at the vendor's own status page",
    ),
    "no connection": (
        "the vendor cannot be reached",
        "look at the network and at {address}, if you have set it",
    ),
    "garbage": (
        "the reply cannot be read",
        "test again; if it stays so, look at the server behind {address}, or name another model",
    ),
}
"""What is wrong and what to do, by the beginning of a failure's detail or by its reason."""

BROKEN: Final = ("the vendor failed ({why})", "test again in a minute")


def explained(reason: str, detail: str, sign: KeySign, seconds: float) -> tuple[str, str]:
    """Return what is wrong with a call, and the remedy.

    `reason` is the status of the call (agents.contracts.ModelUnavailable), `detail` what the record
    has beside it, `seconds` how long an answer was waited for.
    """
    named = next((name for name in REMEDIES if detail.startswith(name)), reason)
    said, remedy = REMEDIES.get(named, BROKEN)
    words = {
        "key": " or ".join(sign.variables),
        "address": sign.address_variable,
        "seconds": seconds,
        "why": detail or reason,
    }
    return said.format(**words), remedy.format(**words)
