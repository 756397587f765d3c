"""The filter language: which messages a filter passes, and which texts are invalid filters."""

import sqlite3
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.delivery.routing.filter_language import FilterInvalid, parse

FIELDS: dict[str, Any] = {
    "channel": "/trades/ibm",
    "data": {
        "price": 120,
        "change": -0.5,
        "symbol": "IBM",
        "note": "it's 100% sure",
        "open": True,
        "none": None,
        "from": "NYSE",
        "x-y": 1,
        "list": [1, 2, 3],
        "deep": {"er": {"value": 7}},
        "long": "a" * 5000,
        "medium": "a" * 2000,
    },
    "priority": 5,
    "properties": {"phone": "1203"},
    "sender": "client/joe/1",
}


@pytest.mark.parametrize(
    "text",
    [
        "data.price > 100",
        "data.price >= 120 AND data.price <= 120 and not data.price <> 120",
        "data.price = 120.0",
        "data.change = -.5",
        "data.price / 2 - 10 = 50",
        "1 + 2 * 3 = 7",
        "(1 + 2) * 3 = 9",
        "-(data.price) = -120",
        "((data.price = 1) OR ((data.price) = 120))",
        "data.symbol = 'IBM'",
        "data.symbol > 'IBL'",
        "data.note LIKE 'it''s%'",
        "data.open",
        "data.open = TRUE AND data.open <> FALSE",
        "NOT NOT data.open",
        "data.none IS NULL",
        "data.missing IS NULL AND data.symbol IS NOT NULL",
        "data.price.missing IS NULL",
        "data.deep.er.value = 7",
        "data.from = 'NYSE'",
        'data."x-y" = 1 AND data."price" = 120',
        "data.price BETWEEN 100 AND 120 AND data.price NOT BETWEEN 1 AND 2",
        "data.symbol IN ('SAP', 'IBM') AND data.symbol NOT IN ('SAP')",
        "data.price IN (-1, 120)",
        "properties.phone LIKE '12%3'",
        "properties.phone NOT LIKE '1XX%3'",
        "properties.phone LIKE '12_3'",
        "data.note LIKE '%100!%%' ESCAPE '!'",
        "data.note LIKE '%it''s%100%sure%' AND NOT data.note LIKE '%100%100%'",
        "data.symbol LIKE 'IBM' AND NOT data.symbol LIKE 'IBM%M'",
        "data.medium LIKE 'a%a'",
        "data.symbol LIKE 'I.M' OR data.symbol = 'IBM'",
        "data.symbol MATCHES '^[A-Z]{3}$'",
        "data.symbol MATCHES 'B' AND NOT data.symbol MATCHES '^B'",
        "LENGTH(data.symbol) = 3 AND length(data.list) = 3",
        "LENGTH(data.long) = 5000",
        "channel = '/trades/ibm' AND priority = 5 AND sender LIKE 'client/joe/%'",
        "data.missing = 1 OR data.price = 120",
    ],
)
def test_a_filter_is_true_for_a_message_that_fulfils_it(text: str) -> None:
    assert parse(text)(FIELDS) is True


@pytest.mark.parametrize(
    "text",
    ["data.price < 100", "data.symbol LIKE 'I.M'", "data.symbol LIKE 'ibm'", "NOT data.open"],
)
def test_a_filter_is_false_for_a_message_that_does_not_fulfil_it(text: str) -> None:
    assert parse(text)(FIELDS) is False


@pytest.mark.parametrize(
    "text",
    [
        "data.missing = 1",
        "NOT data.missing = 1",
        "data.missing",
        "data.price",
        "data.price = '120'",
        "data.symbol > 5",
        "data.open = 1",
        "data.open > FALSE",
        "data.list = data.list",
        "data.none = data.none",
        "data.price / 0 = 1",
        "data.symbol + 1 = 2",
        "data.open + 1 = 2",
        "data.price LIKE '120'",
        "data.long LIKE 'a%'",
        "data.long > 'a'",
        "data.long = data.long",
        "data.medium MATCHES 'a'",
        "data.medium LIKE 'a%_'",
        "LENGTH(data.price) = 3",
        "data.missing BETWEEN 1 AND 2",
        "data.missing NOT IN (1)",
        "1e308 * 10 * data.missing > 1",
    ],
)
def test_a_filter_of_an_unknown_value_is_neither_true_nor_false(text: str) -> None:
    assert parse(text)(FIELDS) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a field or a value is missing at character 1"),
        ("data.price == 1", "write = instead of == at character 13"),
        ("data.price >", "a field or a value is missing at character 13"),
        ("price > 1", "a field begins with channel or data or"),
        ("data. = 1", "a name is missing at character 6"),
        ("data.a > 1)", "the end of the filter is expected at character 11"),
        ("(data.a > 1", ") is missing at character 12"),
        ("data.a # 1", "this cannot be read at character 7"),
        ("data.a = 'b", "this cannot be read at character 9"),
        ("data.a NOT = 1", "BETWEEN, IN, LIKE or MATCHES is missing"),
        ("data.a IS 1", "NULL is missing"),
        ("data.a LIKE 1", "a pattern is missing"),
        ("data.a LIKE '_' ESCAPE '!!'", "ESCAPE takes one character"),
        ("data.a MATCHES '('", "this regular expression is too large or not valid in RE2"),
        ("data.a MATCHES '(a)\\1'", "this regular expression is too large or not valid in RE2"),
        ("data.a IN ()", "a field or a value is missing"),
        ("data.a BETWEEN 1 OR 2", "AND is missing"),
        ("data.a = 1x", "this cannot be read"),
        ("NOT", "a field or a value is missing"),
        ("data.a = 1 -- comment", "a field begins with channel"),
        ("data.a = 1; DROP", "this cannot be read"),
        ("__import__('os')", "a field begins with"),
    ],
)
def test_an_invalid_filter_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(FilterInvalid) as caught:
        parse(text)
    assert str(caught.value).startswith(reason)


@pytest.mark.parametrize(
    "text",
    [
        "data.a = '" + "a" * 1000 + "'",
        "(" * 400 + "data.a" + ")" * 400,
        "data.a = " + "(" * 400 + "1" + ")" * 400,
        "data.a = " + "-" * 900 + "1",
        " OR ".join(["data.a=1"] * 80),
        "data.a IN (" + ",".join("1" * 300) + ")",
        "data.a MATCHES '" + "(a{500}){500}" + "'",
        "data.a MATCHES '" + ".{500}" + "'",
        "data.a LIKE '_' OR data.a MATCHES 'b' OR data.a LIKE '_c'",
    ],
    ids=lambda text: text[:20],
)
def test_a_filter_that_is_too_long_too_deep_or_too_costly_is_refused(text: str) -> None:
    with pytest.raises(FilterInvalid):
        parse(text)


def test_parentheses_are_nested_as_deep_as_the_error_says() -> None:
    assert parse("(" * 20 + "data.a = 1" + ")" * 20)({"data": {"a": 1}})
    with pytest.raises(FilterInvalid, match="at most 20 deep"):
        parse("(" * 21 + "data.a = 1" + ")" * 21)


def test_a_regular_expression_prone_to_backtracking_gets_an_answer() -> None:
    hostile = parse("data.text MATCHES '^(a+)+$'")
    assert hostile({"data": {"text": "a" * 1000 + "b"}}) is False


# Conditions on these columns; SQLite decides what they mean.
numbers = st.sampled_from(["data.i", "data.j", "data.r", "0", "1", "-2", "0.5"])
texts = st.sampled_from(["data.s", "data.t", "'a'", "'ab'", "''"])
sums = st.recursive(
    numbers, lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(" ".join)
)
comparisons = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
maybe_not = st.sampled_from(["", "NOT "])
leaves = st.one_of(
    st.tuples(sums, comparisons, sums).map(" ".join),
    st.tuples(texts, comparisons, texts).map(" ".join),
    st.tuples(numbers | texts, st.just("IS"), maybe_not, st.just("NULL")).map(" ".join),
    st.tuples(sums, maybe_not, st.just("BETWEEN"), sums, st.just("AND"), sums).map(" ".join),
    st.tuples(texts, maybe_not, st.just("IN ("), texts, st.just(","), texts, st.just(")")).map(
        " ".join
    ),
    st.tuples(
        texts,
        maybe_not,
        st.just("LIKE"),
        st.sampled_from(["'a%'", "'_b'", "'%'", "'%a%b%'", "'a%ab'"]),
    ).map(" ".join),
)
conditions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(st.just("("), inner, st.sampled_from(["AND", "OR"]), inner, st.just(")")).map(
            " ".join
        ),
        inner.map("NOT ({})".format),
    ),
    max_leaves=6,
)
integers = st.none() | st.integers(-3, 3)
values = st.fixed_dictionaries(
    {
        "i": integers,
        "j": integers,
        "r": st.none() | st.sampled_from([0.5, -2.0, 1.25]),
        "s": st.none() | st.sampled_from(["", "a", "ab", "b"]),
        "t": st.none() | st.sampled_from(["a", "cb"]),
    }
)


@pytest.mark.slow
@given(text=conditions, data=values)
def test_a_filter_has_the_result_that_sqlite_gives(text: str, data: dict[str, Any]) -> None:
    with sqlite3.connect(":memory:") as sql:
        sql.execute("PRAGMA case_sensitive_like = ON")
        columns = ", ".join(f"? AS {name}" for name in data)
        query = f"SELECT {text} FROM (SELECT {columns}) AS data"
        [said] = sql.execute(query, list(data.values())).fetchone()
    try:
        condition = parse(text)
    except FilterInvalid as refused:
        # What is drawn may be longer than any filter may be.
        assume("at most" not in str(refused))
        raise
    found = condition({"data": data})
    assert found == (None if said is None else bool(said))
