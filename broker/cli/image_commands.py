"""The commands below `image` as the command line accepts them.

Above: app.py, which adds them. Below: the module of each command, imported when it is called.
"""

# Typer reads the annotations while the program runs.
# ruff: noqa: PLC0415, TC001, TC003

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from broker.cli.command_names import group
from broker.cli.options import AsJson, LogJson, Verbose
from broker.cli.start import start

image = group("Build, list and remove images with more Python packages.")


@image.command("build")
def build_image(
    *,
    packages: Annotated[
        list[str] | None,
        typer.Option(
            "--with", metavar="PACKAGE", help="A package as pip takes it, like 'jinja2>=3.1'. Repeat for more."
        ),
    ] = None,
    name: Annotated[str, typer.Option("--name", "-n", metavar="NAME", help="The name of the image.")] = "default",
    lock: Annotated[
        Path | None, typer.Option("--lock", metavar="FILE", help="Build from the lock of an earlier build instead.")
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """Build a guest image with more pure-Python packages.

    Wheels are fetched with pip; none of their code runs on this machine. They are imported inside WebAssembly while
    the image is made, and scripts import them from there. A lock beside the image holds exact versions and hashes.
    Needs `pip install 'codemode-broker[images]'`.

    \b
    Examples:
      codemode image build --with pyyaml --with python-dateutil --name data
      codemode image build --lock packages.lock --name data

    With "image": "data" in the config, scripts run on it.
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import image as command

    start(
        command.build,
        command.BuildRequest(name, tuple(packages or ()), lock, as_json),
        verbose=verbose,
        log_json=log_json,
    )


@image.command("list")
def list_images(
    *,
    compiled: Annotated[
        bool, typer.Option("--compiled", help="List the compiled images in the cache instead.")
    ] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """List the images that were built, with their packages.

    An image is compiled when it is first used, and takes 60 MB then. --compiled lists the compiled images, the last
    used first. They are removed automatically after 30 days without use, those of another wasmtime version after a day.

    \b
    Examples:
      codemode image list
      codemode image list --compiled
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import image as command

    show = command.show_compiled if compiled else command.show_images
    start(show, command.ImagesRequest(as_json), verbose=verbose, log_json=log_json)


@image.command("rm")
def remove_image(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `image list` prints it.")],
    *,
    compiled: Annotated[
        bool, typer.Option("--compiled", help="NAME is a compiled image, as `image list --compiled` prints it.")
    ] = False,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """Remove an image with its lock, or a compiled image.

    \b
    Example:
      codemode image rm data
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import image as command

    start(command.remove, command.RemoveRequest(name, compiled), verbose=verbose, log_json=log_json)
