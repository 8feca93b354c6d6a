"""How a lab shows a figure: with a description for readers who cannot see it."""

import base64
import html
import io


def show(figure, alt: str) -> None:
    """Display a figure and close it. ``alt`` says what is drawn, and with which result.

    The picture is also given as HTML: JupyterLab would not give a PNG an alt text."""
    import matplotlib.pyplot as plt
    from IPython.display import display

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi="figure", bbox_inches="tight")
    plt.close(figure)
    png = base64.b64encode(buffer.getvalue()).decode()
    picture = f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{png}">'
    display(
        {"image/png": png, "text/html": picture, "text/plain": alt},
        raw=True,
        metadata={"image/png": {"alt": alt}},
    )
