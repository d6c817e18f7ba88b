"""Encodes pictures as a WebM video (VP9, without sound) with the ffmpeg of `imageio-ffmpeg`.

That package is the extra `film`, and its program is a process of its own, with bounded memory and
time of the processor where the system knows such bounds. It writes into a file without a name: one
that is killed leaves nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Final

from torra.errors import ConfigError, TorraError, bounded
from torra.film.storyboard import SECONDS
from torra.words.radar import CODES

if sys.platform == "linux":
    import resource

FRAMES: Final = 12
"""Frames of a second."""

KNOWN: Final = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
"""What an encoder gets of the environment: no key."""

MEMORY_BYTES: Final = 400 * 2**20
CPU_SECONDS: Final = 40
REAL_SECONDS: Final = 240.0

READ: Final = "-hide_banner -loglevel error -f image2pipe -c:v png -framerate 1 -i -"
WRITE: Final = (
    f"-an -r {FRAMES} -c:v libvpx-vp9 -pix_fmt yuv420p -deadline realtime -cpu-used 8 -crf 32 "
    "-b:v 0 -threads 1 -fflags +bitexact -flags:v +bitexact -f webm -y fd:"
)


def encoder() -> str:
    """Return the path of ffmpeg; raises ConfigError that names the remedy without one."""
    try:
        from imageio_ffmpeg import get_ffmpeg_exe  # noqa: PLC0415

        return str(get_ffmpeg_exe())
    except (ImportError, RuntimeError) as error:
        raise ConfigError(CODES["film"]["ENCODER_MISSING"].meaning) from error


def encode(pictures: Sequence[bytes]) -> bytes:
    """Return the video of PNGs of one size, each SECONDS long.

    Raises ConfigError without the encoder and TorraError where it fails or meets its bounds.
    """
    command = [encoder(), *READ.split(), *WRITE.split()]
    frames = b"".join(picture * SECONDS for picture in pictures)
    with (
        tempfile.TemporaryFile() as film,
        subprocess.Popen(  # noqa: S603 - no word of the run is in it
            command, stdin=subprocess.PIPE, stdout=film, stderr=subprocess.PIPE, env=KNOWN
        ) as process,
    ):
        if sys.platform == "linux":
            bounds = {resource.RLIMIT_DATA: MEMORY_BYTES, resource.RLIMIT_CPU: CPU_SECONDS}
            for which, most in bounds.items():
                resource.prlimit(process.pid, which, (most, most))
        try:
            _, errors = process.communicate(frames, REAL_SECONDS)
        except BaseException:  # a person cancelled it, too
            process.kill()
            raise
        if process.returncode:
            why = errors.decode(errors="replace")
            raise TorraError(bounded(f"the encoder ended with code {process.returncode}: {why}"))
        film.seek(0)
        return film.read()
