"""Differences from the far side, as the page of what waits for a person ends each of them."""

from typing import Any

from portal.verbs import divergences
from tests.matrix import billing, differences, scenes
from tests.matrix.act import Act, Doing, asking, form


def resolving(name: str, scene: scenes.Scene) -> Act:
    return asking(
        f"divergences.resolve {name}", differences.found(scene), divergences.resolve, "divergence"
    )


def refused_and_let_be(do: Doing) -> Any:
    """What nobody here can ask is refused; then she has looked elsewhere."""
    said = do.at_desk(divergences.resolve, do["divergence"])
    return said, do.form(divergences.let_be, do["divergence"])


NOBODYS = differences.found(differences.a_payment_in_nobodys_books)

ACTS = (
    form("divergences.let_be", NOBODYS, divergences.let_be, "divergence"),
    Act("divergences.resolve nobody's payment", NOBODYS, refused_and_let_be, refused_and_let_be),
    resolving("paid unheard", scenes.paid_and_unheard),
    resolving("payment lost", differences.an_attempt_that_the_provider_lost),
    resolving("dashboard", scenes.a_refund_of_the_dashboard("refund.created")),
    resolving("dispute unheard", scenes.disputed),
    resolving("refund failed", scenes.a_refund_that_fails_later),
    resolving("refund lost", differences.a_refund_that_the_provider_lost),
    resolving("refund under another id", differences.a_refund_under_another_id),
    resolving("stray code", differences.a_stray_code),
    resolving("code gone", scenes.a_key_that_vanished),
    resolving("another end", differences.a_code_with_another_end),
    resolving("other digits", differences.a_code_with_other_digits),
    resolving("mail in doubt arrived", differences.a_mail_in_doubt_that_arrived),
    resolving("mail given up arrived", differences.a_mail_given_up_that_arrived),
    resolving("billed otherwise", billing.an_end_unheard),
    asking(
        "divergences.resolve billed under another id",
        billing.one_under_another_id,
        divergences.resolve,
        "divergence",
    ),
    resolving("mail lost", differences.a_mail_that_the_server_lost),
)
