"""Servers that are broken where an earlier release has left the store."""

from contextlib import ExitStack

from holdfast.compose import storage
from holdfast.store.format.layouts import CurrentLayout, WrittenForm
from tests.simulation.breaking import by_name, nothing, replace, rewrite


def a_start_finishes_the_upgrade(stack: ExitStack) -> None:
    rewrite(stack, "redis.call('HSETNX', meta, 'version', version)",
            "redis.call('HSET', meta, 'version', version)")  # fmt: skip


def the_newest_form_is_written_before_the_finish(stack: ExitStack) -> None:
    def enter(self: CurrentLayout, number: int) -> None:
        self.number, self.form = number, WrittenForm()

    replace(stack, CurrentLayout, "enter", enter)


def requests_are_not_where_the_earlier_release_reads_them(stack: ExitStack) -> None:
    replace(stack, storage, "record_requests", nothing)


def the_finish_is_told_and_not_stored(stack: ExitStack) -> None:
    rewrite(stack, "redis.call('HSET', KEYS[1], 'version', ARGV[2])", "")


BUILDS_OF_UPGRADES = by_name(
    a_start_finishes_the_upgrade,
    the_newest_form_is_written_before_the_finish,
    requests_are_not_where_the_earlier_release_reads_them,
    the_finish_is_told_and_not_stored,
)
