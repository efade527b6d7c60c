"""`dpsql studio`: SQL and its price while one types, in a page of this machine."""

from __future__ import annotations

import errno
import os
from contextlib import closing
from typing import TYPE_CHECKING

import click

from .faults import tell
from .page import serving
from .settings import CommandSettings, pass_settings

if TYPE_CHECKING:
    from ..studio.desk import Desk
    from ..studio.server import StudioServer

__all__ = ["studio"]


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default="a free one",
    help="The port to listen on.",
)
@pass_settings
def studio(settings: CommandSettings, port: int) -> None:
    """Write SQL in a page that says, while you type, what it would cost and how far off it would be.

    Serves this machine's browsers, behind the one-time link that it prints, until Ctrl-C. Prices are free, and while
    you type no row is read; Ctrl+Enter runs the statement and charges it. Answers are tables and charts with their
    error bars.

    \b
      dpsql studio
      dpsql -P campus.toml --analyst ada studio --port 8040
    """
    from ..engine.dataset import Dataset
    from ..studio.desk import Desk

    with (
        closing(Dataset.open(settings.policy_path)) as dataset,
        closing(Desk(dataset, settings.analyst)) as desk,
    ):
        dataset.backend.close_idle()  # while somebody thinks, whoever loads data may
        server = _server(port, desk)
        with serving(server):
            click.echo(server.door.link)
            tell("Open it on this machine: the link opens once. Ctrl-C ends it.")


def _server(port: int, desk: Desk) -> StudioServer:
    """Return the server. Raises click.UsageError: the port is taken."""
    from ..studio.server import StudioServer

    try:
        return StudioServer(port, desk)
    except OSError as error:
        why = "is taken" if error.errno == errno.EADDRINUSE else os.strerror(error.errno or 0)
        raise click.UsageError(f"Port {port}: {why}. Take another with --port.") from None
