"""How a lab shows a figure: with a description for readers who cannot see it."""

import base64
import html

from probelib.report.shown import picture


def show(figure, alt: str) -> None:
    """Display a figure and close it. ``alt`` says what is drawn, and with which result.

    The picture is also given as HTML: JupyterLab would not give a PNG an alt text."""
    import matplotlib.pyplot as plt
    from IPython.display import display

    png = base64.b64encode(picture(figure, "png", dpi="figure", bbox_inches="tight")).decode()
    plt.close(figure)
    shown = f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{png}">'
    data = {"image/png": png, "text/html": shown, "text/plain": alt}
    display(data, raw=True, metadata={"image/png": {"alt": alt}})
