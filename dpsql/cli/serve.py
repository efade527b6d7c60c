"""`dpsql serve`: analysts connect with psql and every other client of Postgres."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import click

from .settings import Settings, pass_settings

__all__ = ["serve"]

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=5433, show_default=True,
    help="The port to listen on; 0 takes a free one, which the log names.",
)  # fmt: skip
@click.option(
    "--certificate", type=_FILE, help="The certificate for TLS, in PEM; needed beyond this machine."
)
@click.option("--key", type=_FILE, help="The certificate's private key, in PEM, without a passphrase.")
@click.option(
    "--max-connections", type=click.IntRange(1, 10_000), default=100, show_default=True,
    help="How many analysts' connections there may be at once.",
)  # fmt: skip
@click.option(
    "--idle", type=click.FloatRange(1), default=3600.0, show_default=True,
    help="Seconds after which a connection that says nothing is closed.",
)  # fmt: skip
@click.option(
    "--grace", type=click.FloatRange(0), default=10.0, show_default=True,
    help="Seconds that running statements have to finish when the server is told to stop.",
)  # fmt: skip
@click.option(
    "--no-grid", is_flag=True,
    help="Answer at once, not at 100, 200, 400 … ms: the time that the database takes can tell of the data. "
    "For benchmarks, and analysts who may see it.",
)  # fmt: skip
@pass_settings
def serve(
    settings: Settings, host: str, port: int, certificate: Path | None, key: Path | None,
    max_connections: int, idle: float, grace: float, no_grid: bool,
) -> None:  # fmt: skip
    """Serve the policy to analysts over Postgres' protocol, until SIGTERM or Ctrl-C.

    Who may connect is in the policy: dpsql user add NAME prints the line to write. The log goes to standard
    error, one JSON object a line.

    \b
      dpsql serve
      psql -h localhost -p 5433 -U alice campus
    """
    from ..policy import load_policy
    from ..server import Options, Server

    options = Options(
        host, port, certificate, key, max_connections=max_connections, idle_seconds=idle, grace_seconds=grace,
        has_grid=not no_grid,
    )  # fmt: skip
    policy = load_policy(settings.policy_path)
    try:
        server = Server(policy, options)
    except ValueError as error:
        raise click.UsageError(f"{error}. See --certificate and --key.") from None
    try:
        asyncio.run(server.run())
    except OSError as error:
        raise click.UsageError(
            f"Cannot listen on {host}, port {port}: {os.strerror(error.errno or 0)}."
        ) from None
