"""``shoal``: the commands, and what happens when one of them fails."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from shoal import __version__
from shoal.cli import auction
from shoal.cli.assign import assign
from shoal.cli.choose import choose
from shoal.cli.command import Command, Group
from shoal.cli.demo import demo
from shoal.cli.edit import edit
from shoal.cli.evaluate import evaluate
from shoal.cli.failure import exit_code_of
from shoal.cli.fit import fit
from shoal.cli.learn import learn
from shoal.cli.merge import merge
from shoal.cli.plan import plan
from shoal.cli.report import report
from shoal.cli.reproduce import reproduce
from shoal.cli.serve import serve
from shoal.cli.show import show
from shoal.cli.stream import stream
from shoal.cli.suggest import suggest
from shoal.cli.warm_up import warm_up

app = typer.Typer(
    name="shoal",
    cls=Group,
    help="Find groups in web-scale sparse, streaming and probabilistic data, and put them to work.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    demo, choose, plan, fit, learn, assign, show, suggest, edit, merge, evaluate, report, stream, serve, reproduce,
    warm_up,
):  # fmt: skip
    app.command(cls=Command)(command)
app.add_typer(auction.app, name="auction")


def _version(asked: bool) -> None:
    if asked:
        print(f"shoal {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


def _open_closed_streams() -> None:
    """Standard streams that the caller closed (``>&-``) are invalid: the next file opened would get their number."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, and those below are open by now
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def run() -> None:
    """The console script. Exit code 0: done. 1: stopped early or a bug. 2: the input, an option or the system."""
    _open_closed_streams()
    for output in (sys.stdout, sys.stderr):
        if hasattr(output, "reconfigure"):  # names that the terminal's encoding lacks are written as escapes
            output.reconfigure(errors="backslashreplace")
    try:
        try:
            app()
        except SystemExit as done:
            if sys.stdout is not None:
                sys.stdout.flush()  # raises here if the disk is full, while the error can still be reported
            sys.exit(done.code)
    except SystemExit:
        raise
    except BaseException as error:
        code = exit_code_of(error)
        if sys.stdout is not None:  # what is left in it can no longer be written
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(code)
