"""Records that features keep at messages and sessions."""

from holdfast.delivery.basics.feature_records import record_of, with_record, without_record


class Topical: ...


class Guarded: ...


class Probed(Guarded): ...


def test_the_ordinary_carrier_has_no_record() -> None:
    assert record_of(None, Topical) is None
    assert record_of((), Topical) is None


def test_a_record_is_found_by_its_class() -> None:
    topical, guarded = Topical(), Guarded()
    records = with_record(with_record(None, topical), guarded)
    assert record_of(records, Topical) is topical
    assert record_of(records, Guarded) is guarded


def test_a_record_of_a_derived_class_is_another_record() -> None:
    assert record_of(with_record(None, Probed()), Guarded) is None


def test_a_record_replaces_the_one_of_its_class() -> None:
    first, second, other = Topical(), Topical(), Guarded()
    records = with_record(with_record(with_record(None, first), other), second)
    assert record_of(records, Topical) is second
    assert len(records) == 2


def test_a_carrier_that_shares_the_records_does_not_get_what_another_adds() -> None:
    shared = with_record(None, Topical())
    with_record(shared, Guarded())
    assert record_of(shared, Guarded) is None


def test_a_record_can_be_removed() -> None:
    records = with_record(with_record(None, Topical()), Guarded())
    assert record_of(without_record(records, Topical), Topical) is None
    assert record_of(without_record(records, Topical), Guarded) is not None
    assert without_record(None, Topical) is None
