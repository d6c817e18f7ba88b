"""What went wrong with a call to a model, and what a person can do about it.

One table for everybody who tells of calls: the test of a model, `torra doctor`, `torra models`,
Health and the notices. Its words are ours; a vendor's may quote a key.
"""

from __future__ import annotations

import re
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
        "raise agents.timeout_seconds if the model is slow; else look at the network, and at the "
        "vendor's own status page",
    ),
    "no connection": (
        "the vendor cannot be reached",
        "look at the network and at {address}, if you have set it",
    ),
    "length": (
        "the model answered, but its answer was cut off at its output limit",
        "raise output_tokens of the role in agents.role_caps, or name a model that thinks less",
    ),
    "context": (
        "the prompt and its answer do not fit the model's context",
        "give the server a larger context, or lower prompt_bytes of the role in agents.role_caps",
    ),
    "filter": (
        "the vendor's filter stopped the answer",
        "test again; if it stays so, look at the vendor's rules of use, or name another vendor",
    ),
    "refusal": (
        "the model refused to answer",
        "read its words on the tick's page under Calls, or name another model",
    ),
    "empty": (
        "the reply is empty",
        "let the server send the answer as content and not as reasoning, or name another model",
    ),
    "tool": (
        "the model wanted to call a tool, and none was offered",
        "turn tools off at the server behind {address}, or name a model that does without",
    ),
    "paused": (
        "the vendor paused the answer before its end",
        "name a model that answers in one turn",
    ),
    "malformed": (
        "the vendor says that the model's output was malformed",
        "test again; if it stays so, name another model of this vendor",
    ),
    "other": (
        "the vendor ended the answer for a reason of its own",
        "test again; if it stays so, look at the vendor's status page, or name another model",
    ),
    "echo": (
        "the reply repeats an object of its own prompt",
        "name a larger model: this one copies what it reads",
    ),
    "two objects": (
        "the reply holds two objects where one was asked for",
        "name a model that answers once",
    ),
    "not JSON": (
        "the model answered, but not in the form that was asked for",
        "name a model that holds to a JSON schema (docs/models.md)",
    ),
    "wrong_symbol": (
        "the reply is about another symbol",
        "name a larger model; behind a proxy, look whether it mixes up requests",
    ),
    "garbage": (
        "the reply cannot be read",
        "test again; if it stays so, look at the server behind {address}, or name another model",
    ),
}
"""What is wrong and what to do, by the beginning of a failure's detail or by its reason."""

BROKEN: Final = (
    "the vendor failed ({why})",
    "test again in a minute; if it stays so, look at the log of a server of yours, or at the "
    "vendor's status page",
)


def explained(reason: str, detail: str, sign: KeySign, seconds: float) -> tuple[str, str]:
    """Return what is wrong with a call, and the remedy.

    `reason` is the status of the call (agents.contracts.ModelUnavailable), `detail` what the record
    has beside it, `seconds` how long an answer was waited for.
    """
    # The detail of a reply about another symbol is that symbol, a stranger's word.
    text = "" if reason == "wrong_symbol" else detail
    named = next((name for name in REMEDIES if re.match(rf"{name}\b", text)), reason)
    fault, remedy = REMEDIES.get(named, BROKEN)
    words = {
        "key": " or ".join(sign.variables),
        "address": sign.address_variable,
        "seconds": seconds,
        "why": detail or reason,
    }
    return fault.format(**words), remedy.format(**words)
