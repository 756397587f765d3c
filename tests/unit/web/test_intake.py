"""What unfinished requests hold is bounded for all of them together."""

import pytest

from app.bayeux.errors import RequestRefused
from app.web.intake import Intake


def test_what_fits_is_taken_and_what_is_given_back_fits_again() -> None:
    intake = Intake(10)
    intake.take(6)
    intake.take(4)
    intake.give_back(6)
    intake.take(6)
    assert intake.held == 10


def test_the_request_that_does_not_fit_is_refused_and_holds_nothing() -> None:
    intake = Intake(10)
    intake.take(6)
    with pytest.raises(RequestRefused, match="503::server_busy"):
        intake.take(5)
    assert intake.held == 6
