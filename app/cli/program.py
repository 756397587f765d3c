"""Commands: their options come in groups, and their helps are laid out in sections."""

import inspect
from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.models import ArgumentInfo

from holdfast.cli.moments import is_span
from holdfast.cli.value_types import shown_value

if TYPE_CHECKING:
    from typer._click import HelpFormatter, Parameter

_WAIT = "--wait"
_ARGUMENTS, _OPTIONS = "Arguments", "Options"

Command = TypeVar("Command", bound=Callable[..., None])
Outcome = TypeVar("Outcome")


class _InSections(TyperCommand):
    """Shows its arguments, its options below them, and each panel under its heading."""

    def format_options(self, context: typer.Context, formatter: "HelpFormatter") -> None:  # type: ignore[override]
        sections: dict[str, list[tuple[str, str]]] = {_ARGUMENTS: [], _OPTIONS: []}
        for option in self.get_params(context):
            if row := help_record(option, context):
                usual = _ARGUMENTS if isinstance(option, TyperArgument) else _OPTIONS
                panel = getattr(option, "rich_help_panel", None)
                sections.setdefault(panel or usual, []).append(row)
        for heading, rows in sections.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


class WithWait(_InSections):
    """Lets `--wait` stand alone, too: a span of time behind it is its value, anything else not."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        for place, word in enumerate(args):
            if word == _WAIT and not is_span("".join(args[place + 1 : place + 2])):
                args[place] = f"{_WAIT}="
        return super().parse_args(ctx, args)


class WithManyOptions(_InSections):
    """Has options alone, none of which must be given, and reads only the given ones.

    typer makes a converter for each option that it reads: for all settings of a server, that takes
    a twentieth of its start.
    """

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        every = self.params
        known = {name for each in every for name in _names_of(each)}
        given = {word.partition("=")[0] for word in args if word.startswith("-")}
        if not given <= known:
            # A call for help, or a mistake.
            return super().parse_args(ctx, args)
        self.params = [each for each in every if not given.isdisjoint(_names_of(each))]
        ctx.params |= {each.name: None for each in every if each not in self.params}
        try:
            return super().parse_args(ctx, args)
        finally:
            self.params = every


def _names_of(option: "Parameter") -> list[str]:
    return [*option.opts, *option.secondary_opts]


class _CommandGroup(TyperGroup):
    """Describes each of its commands in a whole sentence."""

    def format_commands(self, context: typer.Context, formatter: "HelpFormatter") -> None:  # type: ignore[override]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, _sentence(command.help)) for name, command in self.commands.items()]
            )


def _sentence(help: str | None) -> str:
    return " ".join((help or "").partition("\n\n")[0].split())


def help_record(option: Any, context: typer.Context) -> tuple[str, str] | None:  # noqa: ANN401 - typer has click inside
    """Return the name and the help of an option, or of an argument without its Python type."""
    record: tuple[str, str] | None = option.get_help_record(context)
    if record is not None and isinstance(option, TyperArgument):
        return option.display_name_raw, record[1]
    return record


class Program(typer.Typer):
    """A command, or a group of commands; main.py has its help.

    A parameter that is annotated with a function stands for a group of options: the function takes
    them, and other groups, and returns the value of the parameter. Its docstring, if it has one, is
    their heading in the help. An argument or an option has its parameter's name, and an option
    shows the type of its value, unless it says something else.
    """

    def __init__(self, **more: Any) -> None:  # noqa: ANN401 - as typer takes it
        super().__init__(add_completion=False, rich_markup_mode=None, **more)

    def command(
        self,
        name: str | None = None,
        **more: Any,  # noqa: ANN401 - as typer takes it
    ) -> Callable[[Command], Command]:
        register = super().command(name, **{"cls": _InSections, **more})

        def add(command: Command) -> Command:
            register(_gathered(command))
            return command

        return add


def group_of_commands() -> Program:
    """Return a group of commands."""
    return Program(cls=_CommandGroup, no_args_is_help=True)


def _gathered(command: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """Give a command, or a group, the options of its groups."""
    signature = inspect.signature(command)
    groups = {
        name: _gathered(maker)
        for name, each in signature.parameters.items()
        if (maker := _maker(each))
    }
    options = {name: inspect.signature(maker).parameters for name, maker in groups.items()}

    def with_groups(**given: object) -> Outcome:
        for name, maker in groups.items():
            given[name] = maker(**{option: given.pop(option) for option in options[name]})
        return command(**given)

    shown = [
        _shown(maker and maker.__doc__, option)
        for name, each in signature.parameters.items()
        for maker in [groups.get(name)]
        for option in (options[name].values() if maker else [each])
    ]
    with_groups.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    with_groups.__name__, with_groups.__doc__ = command.__name__, command.__doc__
    return with_groups


def _shown(heading: str | None, parameter: inspect.Parameter) -> inspect.Parameter:
    """Return the parameter with all that its option says."""
    kind, about = get_args(parameter.annotation)
    about = copy(about)
    if isinstance(about, ArgumentInfo):
        about.metavar = about.metavar or parameter.name.upper()
    else:
        about.rich_help_panel = about.rich_help_panel or heading
        about.metavar = about.metavar or shown_value(kind)
        if about.default is ... and kind is bool:
            about.param_decls = ("--" + parameter.name.replace("_", "-"),)
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, about])


def _maker(parameter: inspect.Parameter) -> Callable[..., object] | None:
    found = getattr(parameter.annotation, "__metadata__", ())
    return next((each for each in found if inspect.isfunction(each)), None)
