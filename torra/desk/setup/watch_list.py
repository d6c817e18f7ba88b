"""Which symbols the radar watches beside the desk's own, written into desk.json.

A scan reads the file anew, so it counts from the next one on, whether a desk runs or not.
"""

from __future__ import annotations

from collections.abc import Sequence

from torra.config import DeskSettings, validate
from torra.desk.setup.adding import read_desk
from torra.desk.setup.desk_plan import as_text
from torra.errors import ConfigError
from torra.home import DESK, DESK_BEFORE
from torra.trading.commanding import CommandContext, CommandResult, command
from torra.whole_files import write_whole


@command("watch list")
def set_watch(desk: CommandContext, symbols: Sequence[str]) -> CommandResult:
    """Set `radar.watch`; raises ConfigError for what is no symbol, and without a desk.json.

    The file as it was stays beside it.
    """
    path = desk.home / DESK
    content, values = read_desk(path)
    if not values:
        raise ConfigError(f"{path} is not there: this desk is the demo; torra init makes your own")
    radar, after = values.get("radar", {}), [*dict.fromkeys(symbols)]
    values = {**values, "radar": {**radar, "watch": after}}
    validate(DeskSettings, values, DESK)
    try:
        write_whole(path.with_name(DESK_BEFORE), content)
        write_whole(path, as_text(values).encode())
    except OSError as error:
        raise ConfigError(f"cannot write {error.filename}: {error.strerror}") from error
    return CommandResult({"watch": after}, {"watch": radar.get("watch", [])}, {"watch": after})
