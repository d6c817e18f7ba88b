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

Paths = Any
"""Arrays of shape (points, 2), in pixels; an array of many such paths is one as well."""

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
        size = width / PIXELS_PER_INCH, height / PIXELS_PER_INCH
        self._figure = Figure(size, dpi=PIXELS_PER_INCH, facecolor=PAPER, edgecolor=PAPER)
        self._canvas: Any = FigureCanvasAgg(self._figure)
        self._fonts = f"{get_data_path()}/fonts/ttf/DejaVuSans"

    def lines(
        self,
        paths: Paths,
        colours: str | Sequence[str],
        *,
        width: float = 1.0,
        dashes: tuple[float, float] | None = None,
        crisp: bool = True,
        **place: Any,
    ) -> None:
        """Draw open lines, `width` pixels wide; crisp ones are not smoothed."""
        from matplotlib.collections import LineCollection  # noqa: PLC0415

        drawn = LineCollection(
            paths,
            colors=colours,
            linewidths=width * POINTS_PER_INCH / PIXELS_PER_INCH,
            linestyles="solid" if dashes is None else [(0, dashes)],
            antialiaseds=not crisp,
            capstyle="butt",
            joinstyle="round",
        )
        self._lay(drawn, **place)

    def areas(self, outlines: Paths, colours: Sequence[str], **place: Any) -> None:
        """Fill outlines, without an edge."""
        from matplotlib.collections import PolyCollection  # noqa: PLC0415

        drawn = PolyCollection(
            outlines, facecolors=colours, edgecolors="none", linewidths=0.0, antialiaseds=False
        )
        self._lay(drawn, **place)

    def row(self, x: float, y: float, parts: Iterable[tuple[str, str]], **style: Any) -> float:
        """Write texts with their colours side by side; return where the next one may begin."""
        for text, colour in parts:
            drawn = self.text(x, y, text, colour, **style)
            x = drawn.get_window_extent(self._canvas.get_renderer()).x1 + TEXT_GAP
        return x

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
        self._lay(drawn, depth)
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

    def _lay(
        self, drawn: Any, depth: int = 1, clip: tuple[float, float, float, float] | None = None
    ) -> None:
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


def strokes(x: Any, y: Any, end_x: Any, end_y: Any) -> NDArray[np.float64]:
    """Return straight lines from (x, y) to their ends; each argument is a number or an array."""
    return np.stack(np.broadcast_arrays(x, y, end_x, end_y), axis=-1).reshape(-1, 2, 2)


def boxes(left: Any, right: Any, edge: Any, other: Any) -> NDArray[np.float64]:
    """Return rectangles that are at least a pixel high; each argument is a number or an array."""
    bottom, top = np.minimum(edge, other), np.maximum(edge, other)
    thin, middle = top - bottom < 1.0, (bottom + top) / 2.0
    bottom, top = np.where(thin, middle - 0.5, bottom), np.where(thin, middle + 0.5, top)
    corners = left, bottom, right, bottom, right, top, left, top
    return np.stack(np.broadcast_arrays(*corners), axis=-1).reshape(-1, 4, 2)
