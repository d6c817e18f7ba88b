"""Draws a scene as a PNG of 1280 x 720 pixels: its text, and beside it the chart of its stream.

The chart is the one that agents see (torra.chart.renderer). Drawing raises ConfigError without the
extra `chart`.
"""

from __future__ import annotations

import io
import textwrap
from typing import Final

import pandas as pd

from torra.chart import renderer
from torra.chart.sheet import Sheet
from torra.exhibits.figures import sanitize
from torra.film.storyboard import LONGEST, Scene

WIDTH: Final = 1280
HEIGHT: Final = 720
MARGIN: Final = 24

CHARACTERS: Final = {False: 100, True: 38}
"""Characters of a line of text over the whole width, and beside a chart."""

SIZES: Final = {False: (22.0, 15.0), True: (12.0, 10.5)}
"""Points of the title and of other text, over the whole width and beside a chart."""


def draw(scene: Scene, bars: pd.DataFrame, digits: int) -> bytes:
    """Return the picture of a scene; one whose bars are too few has no chart.

    Raises ConfigError without matplotlib.
    """
    charted = len(bars) >= renderer.LEAST_BARS
    sheet = Sheet(WIDTH, HEIGHT)
    title, usual = SIZES[charted]
    parts = [(scene.title, title, renderer.INK)]
    parts += [(text, usual, renderer.INK) for text in scene.captions]
    parts += [(f"{name}: {text}", usual, renderer.FAINT) for name, text in scene.rows]
    y = HEIGHT - 2.0 * MARGIN
    for text, size, colour in parts:
        for line in textwrap.wrap(sanitize(text, LONGEST), CHARACTERS[charted]):
            if y > MARGIN:  # what has no room stands on the page
                sheet.text(MARGIN, y, line, colour, size=size, bold=size == title)
            y -= 2.0 * size
        y -= size if colour == renderer.INK else 0.0
    return _with_chart(sheet.png(), scene, bars, digits) if charted else sheet.png()


def _with_chart(picture: bytes, scene: Scene, bars: pd.DataFrame, digits: int) -> bytes:
    from PIL import Image  # noqa: PLC0415  comes with matplotlib

    name, _, timeframe = scene.stream.partition("|")
    chart = renderer.render(bars, symbol=name, timeframe=timeframe, digits=digits)
    whole = Image.open(io.BytesIO(picture)).convert("RGB")
    place = WIDTH - renderer.WIDTH, (HEIGHT - renderer.HEIGHT) // 2
    whole.paste(Image.open(io.BytesIO(chart)).convert("RGB"), place)
    file = io.BytesIO()
    whole.save(file, "png")
    return file.getvalue()
