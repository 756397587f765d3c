"""What is sent along with a connection."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.web.doors.preface import PACKET, decode, encode
from holdfast.web.front.arrival import Arrival, OpenSocket, RelayedClient

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
relayed = st.builds(
    RelayedClient,
    st.none() | st.tuples(texts, st.integers(0, 65535)),
    st.lists(st.tuples(texts, texts), max_size=3).map(tuple),
)
sockets = st.builds(
    OpenSocket, st.lists(texts, max_size=3).map(tuple), st.none() | texts, st.booleans()
)
arrivals = st.builds(
    Arrival,
    texts,
    st.booleans(),
    st.booleans(),
    st.none() | relayed,
    st.none() | sockets,
    st.integers(0, 9),
)


@given(arrivals, st.sampled_from([b"", b"\n", b"{}\n" * 9, b"x" * PACKET, b"y" * 3 * PACKET]))
def test_what_was_sent_is_read(arrival: Arrival, read: bytes) -> None:
    first, *later = encode(arrival, read)
    assert all(0 < len(each) <= PACKET for each in later)
    told, size, begun = decode(first)
    assert (told, size) == (arrival, len(read))
    assert begun + b"".join(later) == read


def test_earlier_releases_do_not_say_how_often_a_connection_moved() -> None:
    packet = (
        b'{"arrival":{"listener":"main","is_used":true,"is_kept":false,"relayed":null,'
        b'"socket":null},"read":0}\n'
    )
    assert decode(packet) == (Arrival("main"), 0, b"")


@pytest.mark.parametrize(
    "packet", [b"", b"x", b"{}\n", b"[]\nabc", b'{"arrival":{"listener":"main"}}\n']
)
def test_other_bytes_are_refused(packet: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(packet)
