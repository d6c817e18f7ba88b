"""Where a channel of Torra's own bridge lies, and the key of its messages.

Apart from the bridge: a feed and the HALT files need the folder where nothing is sent.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from torra.config import Channel
from torra.errors import ConfigError

COMMON_FILES: Final = "MetaQuotes/Terminal/Common/Files"
"""Below %APPDATA%: the folder that every MetaTrader terminal of a user shares."""


def folder_of(name: str, channel: Channel, environment: Mapping[str, str] | None = None) -> Path:
    """Return a channel's folder, by default Torra/<name> of the Common Files; raises ConfigError.

    The default is known on Windows only, where APPDATA is set.
    """
    if channel.folder:
        return Path(channel.folder).expanduser()
    data = (os.environ if environment is None else environment).get("APPDATA")
    if not data:
        raise ConfigError(
            f"channels.{name}.folder is empty: write the path of Torra/{name} in the Common Files "
            "of MetaTrader (File, Open Data Folder, one folder up, Common, Files)"
        )
    return Path(data) / COMMON_FILES / "Torra" / name


def key_of(channel: Channel, environment: Mapping[str, str] | None = None) -> str:
    """Return the channel's key from the environment; raises ConfigError naming the variable."""
    key = (os.environ if environment is None else environment).get(channel.key_variable, "")
    if not key.strip():
        raise ConfigError(
            f"the environment variable {channel.key_variable} is not set: give it the same long "
            "random text as the Advisor's input channel_key"
        )
    return key
