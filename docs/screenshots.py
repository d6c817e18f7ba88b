"""Take the pictures of docs/pictures/: every screen in a real browser, over made-up desks.

    python docs/screenshots.py

Needs what the tests need (`make test` installs it) and Chromium; a desk of the tests stands behind
the pages, so no account, key or home of anybody is in a picture. Pictures have few colours and are
written anew, all or none; together they stay below MOST_BYTES.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from PIL import Image  # noqa: E402

from tests.doubles.browser import DESK, PHONE, Site, Visit, chromium  # noqa: E402
from tests.worlds.screens import addresses_of, desk_app, view_app  # noqa: E402

PICTURES: Final = ROOT / "docs" / "pictures"
MOST_BYTES: Final = 1_500_000
COLOURS: Final = 96
SETTLED: Final = 900
"""Milliseconds until a chart is drawn and the figures are live."""

BETTER_ON_VIEW: Final = ("overview", "symbol", "tick", "help")
"""Screens that show more of the scripted desk; the others need a desk with a database."""

LEFT_OUT: Final = (
    "instance", "audit_check", "orders-all", "orders-working", "orders-open", "orders-refused",
    "orders-waiting",
)  # fmt: skip
"""Addresses that show a screen of the list once more."""

RENAME: Final = """(pairs) => {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    for (const [path, name] of pairs) {
      walk.currentNode.data = walk.currentNode.data.replaceAll(path, name);
    }
  }
}"""
"""No folder of the machine that took the pictures is in one."""

CLOSED: Final = "/orders/TWON0000000"
"""The page of a trade that is over."""

BY_HAND: Final = ("desk.png",)
"""Of a running demo, for the README: not taken here."""

ALSO_DARK: Final = ("overview", "symbol")
ALSO_PHONE: Final = ("overview", "approval", "tick")


def main() -> None:
    """Write every picture, or none when one cannot be taken or they are too large."""
    with tempfile.TemporaryDirectory() as folder:
        taken = dict(_all(Path(folder)))
    size = sum(map(len, taken.values()))
    if size > MOST_BYTES:
        raise SystemExit(f"the pictures have {size:,} bytes, more than {MOST_BYTES:,}")
    PICTURES.mkdir(exist_ok=True)
    for old in PICTURES.glob("*.png"):
        if old.name not in BY_HAND:
            old.unlink()
    for name, data in taken.items():
        (PICTURES / name).write_bytes(data)
    sys.stdout.write(f"{len(taken)} pictures, {size:,} bytes\n")


def _all(folder: Path) -> Iterator[tuple[str, bytes]]:
    apps = {"view": view_app(), "desk": desk_app(folder)}
    with contextlib.ExitStack() as open_things:
        sites = {name: open_things.enter_context(Site(app)) for name, app in apps.items()}
        browser = open_things.enter_context(chromium())
        with Visit(browser) as visit:
            visit.page.goto(sites["desk"].url + "/login")
            yield "login.png", _picture(visit)
            cookies = visit.enter(sites["desk"])
        for name, address in _addresses(apps, sites).items():
            looks = [("", DESK, "light")]
            looks += [("-dark", DESK, "dark")] if name in ALSO_DARK else []
            looks += [("-phone", PHONE, "light")] if name in ALSO_PHONE else []
            for suffix, screen, scheme in looks:
                with Visit(browser, screen=screen, scheme=scheme, cookies=cookies) as visit:
                    visit.page.goto(address)
                    yield f"{name}{suffix}.png", _picture(visit)
    apps["desk"].extensions["torra_agents"].backing.database.close()


def _addresses(apps: dict[str, Any], sites: dict[str, Site]) -> dict[str, str]:
    """Return the address of every screen, on the desk that shows more of it."""
    found = {}
    for desk in ("desk", "view"):
        for name, address in addresses_of(apps[desk]).items():
            if name not in LEFT_OUT and (desk == "desk" or name in BETTER_ON_VIEW):
                found[name] = sites[desk].url + address
    found["approval"] = found["order"]  # of one that waits, whose page is the longest
    found["order"] = sites["desk"].url + CLOSED
    return found


def _picture(visit: Visit) -> bytes:
    visit.page.wait_for_timeout(SETTLED)
    visit.page.evaluate(RENAME, [[tempfile.gettempdir(), "/home/you"], [str(ROOT), "/opt/torra"]])
    image = Image.open(io.BytesIO(visit.page.screenshot()))
    small = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    kept = io.BytesIO()
    small.save(kept, "png", optimize=True)
    return kept.getvalue()


if __name__ == "__main__":
    main()
