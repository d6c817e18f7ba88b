"""A white sheet of pixels to draw lines, areas and text on, and its PNG.

This is the only module that knows matplotlib (the extra `chart`), which rasterises. It imports
matplotlib when the first sheet is made, never its state machine (pyplot), and hands it finished
pixels. Every colour, width and font is named here or by the caller, so no style file changes a
picture.

Making a sheet raises ConfigError when the package is missing; nothing else here fails. One thread
at a time may draw on sheets.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from torra.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.text import Text

Points = Sequence[tuple[float, float]] | NDArray[np.float64]
Clip = tuple[float, float, float, float]

PIXELS_PER_INCH: Final = 100
POINTS_PER_INCH: Final = 72

PALETTE: Final = 128
"""Colours of a picture: a third of the bytes of true colour, and the eye sees no difference."""

PAPER: Final = "#ffffff"
USUAL: Final = 9.5
"""Usual size of text in points."""

TEXT_GAP: Final = 15.0
"""Pixels between two texts of a row."""


class Sheet:
    """`width` x `height` pixels, counted from the lower left; a greater depth lies on top."""

    def __init__(self, width: int, height: int) -> None:
        try:
            # Where it is used: an extra, and slow to load.
            from matplotlib import get_data_path  # noqa: PLC0415
            from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
            from matplotlib.figure import Figure  # noqa: PLC0415
        except ImportError as error:
            raise ConfigError(
                "drawing charts needs matplotlib: pip install 'torra[chart]', "
                "or set agents.picture to off or file"
            ) from error
        figure = Figure(
            figsize=(width / PIXELS_PER_INCH, height / PIXELS_PER_INCH),
            dpi=PIXELS_PER_INCH,
            facecolor=PAPER,
            edgecolor=PAPER,
        )
        self._figure = figure
        self._canvas: Any = FigureCanvasAgg(figure)
        self._fonts = f"{get_data_path()}/fonts/ttf/DejaVuSans"

    def lines(
        self,
        paths: Iterable[Points],
        colours: str | Sequence[str],
        *,
        width: float = 1.0,
        dashes: tuple[float, float] | None = None,
        crisp: bool = False,
        depth: int = 1,
        clip: Clip | None = None,
    ) -> None:
        """Draw open lines, `width` pixels wide; crisp ones are not smoothed."""
        from matplotlib.collections import LineCollection  # noqa: PLC0415

        drawn = LineCollection(
            [np.asarray(path) for path in paths],
            colors=colours,
            linewidths=width * POINTS_PER_INCH / PIXELS_PER_INCH,
            linestyles="solid" if dashes is None else [(0, dashes)],
            antialiaseds=not crisp,
            capstyle="butt",
            joinstyle="round",
        )
        self._lay(drawn, depth, clip)

    def areas(
        self,
        outlines: Sequence[Points],
        colours: Sequence[str],
        *,
        depth: int = 1,
        clip: Clip | None = None,
    ) -> None:
        """Fill outlines, without an edge."""
        from matplotlib.collections import PolyCollection  # noqa: PLC0415

        drawn = PolyCollection(
            [np.asarray(outline) for outline in outlines],
            facecolors=colours,
            edgecolors="none",
            linewidths=0.0,
            antialiaseds=False,
        )
        self._lay(drawn, depth, clip)

    def row(
        self,
        x: float,
        y: float,
        parts: Iterable[tuple[str, str]],
        *,
        heading: tuple[str, str] | None = None,
    ) -> None:
        """Write texts with their colours side by side, the heading larger and first."""
        if heading is not None:
            x = self._end(self.text(x, y, *heading, size=13.0, bold=True)) + TEXT_GAP
        for text, colour in parts:
            x = self._end(self.text(x, y, text, colour)) + TEXT_GAP

    def text(
        self,
        x: float,
        y: float,
        text: str,
        colour: str,
        *,
        size: float = USUAL,
        bold: bool = False,
        align: Literal["left", "center"] = "left",
        depth: int = 6,
    ) -> Text:
        """Write a line of text, vertically centred at y."""
        from matplotlib.font_manager import FontProperties  # noqa: PLC0415
        from matplotlib.text import Text  # noqa: PLC0415

        drawn = Text(
            x=x,
            y=y,
            text=text,
            color=colour,
            # The font that comes with the library, whatever the machine has.
            fontproperties=FontProperties(
                fname=f"{self._fonts}{'-Bold' if bold else ''}.ttf", size=size
            ),
            horizontalalignment=align,
            verticalalignment="center_baseline",
            usetex=False,
            parse_math=False,
            antialiased=True,
        )
        self._lay(drawn, depth, None)
        return drawn

    def png(self) -> bytes:
        """Return the sheet as a PNG without metadata; nothing can be drawn on it any more."""
        from PIL import Image  # noqa: PLC0415  comes with matplotlib

        self._canvas.draw()
        pixels = np.ascontiguousarray(np.asarray(self._canvas.buffer_rgba())[:, :, :3])
        # They all know each other and would keep 3 MiB until the next collection.
        for drawn in tuple(self._figure.artists):
            drawn.remove()
        del self._canvas.renderer
        picture = Image.fromarray(pixels).quantize(
            PALETTE, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
        )
        file = io.BytesIO()
        picture.save(file, "png")
        return file.getvalue()

    def _lay(self, drawn: Any, depth: int, clip: Clip | None) -> None:
        from matplotlib.transforms import Bbox, IdentityTransform  # noqa: PLC0415

        drawn.set_transform(IdentityTransform())
        drawn.set_zorder(depth)
        # Each of these would else come from the style settings of the machine.
        drawn.set_snap(False)
        drawn.set_sketch_params(None)
        drawn.set_path_effects([])
        self._figure.add_artist(drawn)
        if clip is not None:
            drawn.set_clip_box(Bbox.from_extents(*clip))

    def _end(self, drawn: Text) -> float:
        return float(drawn.get_window_extent(self._canvas.get_renderer()).x1)
