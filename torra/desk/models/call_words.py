"""How the newest calls to a model went, in words: for doctor, `torra models` and the pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agent_config import VENDORS
from torra.desk.models.remedies import explained
from torra.providers.call_health import ModelHealth, Row
from torra.providers.vendors.addresses import KeySign, key_sign
from torra.providers.vendors.table import FORM_IN_USE

GAVE_WAY: Final = "replies to the one before could not be used"

PLUG_IN: Final = KeySign(("its key",), "its address", "", official=True, local=False)
"""Of a plug-in: the name of its key is not known here."""


def line(one: ModelHealth) -> str:
    """Return how many of its newest calls were usable, and what is wrong with the others."""
    if not one.calls:
        return "not asked yet"
    last = f", the last at {one.last_usable[:16].replace('T', ' ')} UTC" if one.last_usable else ""
    wrong = f": {_explained(one.vendor, one.cause, {})[0]}" if one.cause else ""
    form = f"; {FORM_IN_USE}{one.form}: {GAVE_WAY}" if one.form else ""
    return f"{one.usable} of its newest {one.calls} calls usable{last}{wrong}{form}"


def remedy(one: ModelHealth, environment: Mapping[str, str]) -> str:
    """Return what a person can do about a model that fails; "" for one that does not."""
    failing = one.failing and one.cause
    return _explained(one.vendor, failing, environment)[1] if failing else ""


def _explained(vendor: str, row: Row, environment: Mapping[str, str]) -> tuple[str, str]:
    ours = vendor in VENDORS
    # Behind its own detail stand those of vendors that were asked before; a plug-in's is a
    # stranger's text.
    detail = row["detail"].rpartition(f"{vendor}: ")[2] if ours else ""
    sign = key_sign(vendor, environment) if ours else PLUG_IN
    reason = "timeout" if row["status"] == "late" else row["status"]
    return explained(reason, detail, sign, row["elapsed_ms"] / 1000)
