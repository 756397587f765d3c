"""The file of passwords."""

from pathlib import Path

import pytest

from holdfast.login import passwords
from holdfast.login.failures import LoginFailed, Unusable
from holdfast.login.passwords import PasswordFile, User, hashed, read_users, verify


@pytest.mark.slow
def test_a_user_logs_in_only_with_the_right_password(tmp_path: Path) -> None:
    file = PasswordFile(tmp_path / "passwords")
    file.put(User("ada", hashed("correct horse"), ("staff",)))
    users = read_users((tmp_path / "passwords").read_bytes())

    assert verify(users, "ada", "correct horse").groups == ("staff",)
    for subject, password in (("ada", "battery"), ("bob", "correct horse"), ("ada", "")):
        with pytest.raises(LoginFailed):
            verify(users, subject, password)


@pytest.mark.slow
def test_an_unknown_user_costs_as_much_as_a_wrong_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise the time until the reply would show who is a user."""
    tried: list[str] = []
    hasher = passwords._HASHER

    class Watched:
        def verify(self, hashed: str, password: str) -> bool:
            tried.append(hashed.rsplit("$", 2)[0])
            return hasher.verify(hashed, password)

    users = {"ada": User("ada", hashed("correct horse"))}
    passwords._nobodys()
    monkeypatch.setattr(passwords, "_HASHER", Watched())
    for subject in ("ada", "nobody", "", "ada/1"):
        with pytest.raises(LoginFailed):
            verify(users, subject, "battery staple")

    # With the same parameters.
    assert len(tried) == 4
    assert len(set(tried)) == 1


@pytest.mark.slow
def test_the_file_is_private_and_contains_no_password(tmp_path: Path) -> None:
    path = tmp_path / "passwords"
    PasswordFile(path).put(User("ada", hashed("correct horse")))

    assert path.stat().st_mode & 0o777 == 0o600
    assert b"horse" not in path.read_bytes()
    assert [each.name for each in tmp_path.iterdir()] == ["passwords"]


def test_a_user_can_be_changed_and_removed(tmp_path: Path) -> None:
    file = PasswordFile(tmp_path / "passwords")
    file.put(User("ada", "$argon2id$1"))
    file.put(User("bob", "$argon2id$2", ("a", "b")))
    file.put(User("ada", "$argon2id$3"))

    assert {name: user.hash for name, user in file.users().items()} == {
        "ada": "$argon2id$3",
        "bob": "$argon2id$2",
    }
    assert file.remove("ada")
    assert not file.remove("ada")
    assert list(file.users()) == ["bob"]
    assert file.users()["bob"].groups == ("a", "b")


@pytest.mark.parametrize(
    "text",
    [b"ada", b"ada:secret", b"a b:$argon2id$x", b"ada:$argon2id$x:no group", b"x:$argon2id$y"],
)
def test_a_malformed_line_or_a_repeated_user_makes_the_file_unusable(text: bytes) -> None:
    with pytest.raises(Unusable, match=r"line 3|a group"):
        read_users(b"# users\n\n" + text)
    with pytest.raises(Unusable):
        read_users(b"ada:$argon2id$x\nada:$argon2id$y\n")
