"""Commands that know what other tools call their options, and that say so when Ctrl-C has ended them."""

from __future__ import annotations

from typing import Any

from typer._click.exceptions import NoSuchOption
from typer.core import TyperCommand, TyperGroup

from shoal.cli.failure import exit_code_of

# What users of other tools try first, and what it is called here.
OTHER_NAMES = {
    "--k": "--clusters",
    "--n": "--clusters",
    "--n-clusters": "--clusters",
    "--num-clusters": "--clusters",
    "--output": "--out",
    "--id": "--item",
    "--sep": "--delimiter",
    "--separator": "--delimiter",
    "--column": "--features",
    "--tags": "--features",
    "--date": "--time",
    "--timestamp": "--time",
    "--random-state": "--seed",
    "--force": "--overwrite",
    "--silent": "--quiet",
    "--min-df": "--min-items",
    "--labels": "--label",
}


class Command(TyperCommand):
    """Names the right option when a wrong one is given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {name for parameter in self.params for name in parameter.opts}
        try:
            return super().parse_args(ctx, args)
        except NoSuchOption as error:
            meant = OTHER_NAMES.get(error.option_name.replace("_", "-"))
            if meant in known:
                error.possibilities = [meant]
            elif "--set" in known and ("_" in error.option_name or not error.possibilities):
                error.message += f"; parameters of a model are given as --set {error.option_name.lstrip('-')}=VALUE"
                error.possibilities = []
            raise


class Group(TyperGroup):
    """Reports Ctrl-C, which typer would let pass without a word."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise SystemExit(exit_code_of(error)) from None
