"""Sends one notice through Apprise and ends: started by torra.notices.apprise_service alone.

Reads one JSON object from standard input (address, title, body, type) and writes one word: sent,
refused, unknown or missing. It knows nothing of Torra, writes no file, and has a bounded memory
where the system can bound it. Whatever fails ends it without a word.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress
from typing import Final

MOST_BYTES: Final = 1 << 30
"""Memory of this process: a reply without an end must not take the desk's."""


def main() -> None:
    """Send what standard input says."""
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - not on Windows

        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    message = json.load(sys.stdin)
    sys.stdout.write(send(message["address"], message["title"], message["body"], message["type"]))


def send(address: str, title: str, body: str, kind: str) -> str:
    """Return what became of a notice."""
    logging.disable(logging.CRITICAL)
    try:
        import apprise  # noqa: PLC0415
    except ImportError:
        return "missing"
    # Nothing is fetched, kept or run for an address: no files of it, no plug-ins, no storage.
    asset = apprise.AppriseAsset(
        app_id="Torra", app_desc="Torra", app_url="", secure_logging=True, plugin_paths=[]
    )
    asset.http_redirects = False  # an address leads nowhere but where it says
    service = apprise.Apprise.instantiate(address, asset=asset, suppress_exceptions=True)
    if service is None:
        return "unknown"
    taken = service.notify(
        title=title, body=body, notify_type=kind, body_format=apprise.NotifyFormat.TEXT
    )
    return "sent" if taken is True else "refused"


if __name__ == "__main__":
    main()
