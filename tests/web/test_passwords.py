"""Passwords are kept as RFC 9106 says for machines with little memory, or stronger."""

import re

from portal.web import passwords


def test_what_is_kept_is_argon2id_of_the_recommended_strength(monkeypatch):
    from argon2 import PasswordHasher

    monkeypatch.setattr(passwords, "_hasher", PasswordHasher())
    kept = passwords.digest("a password")
    cost = re.match(r"\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$", kept)
    assert cost
    memory, passes, _ = (int(number) for number in cost.groups())
    assert memory >= 65536
    assert passes >= 3
    assert passwords.matches(kept, "a password")


def test_an_unknown_person_never_matches():
    assert not passwords.matches(None, "nobody has this password")
    assert not passwords.matches("no hash at all", "x")
