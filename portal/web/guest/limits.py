"""A limit for whoever tries links that lead nowhere. Good links are never counted."""

from flask import Response

from portal.web.extensions import limiter


def _missed(response: Response) -> bool:
    return response.status_code == 404


# Of whole blueprints: a view's own limit would come too late, after the link was looked up.
guesses = limiter.shared_limit("60 per minute", scope="guest_links", deduct_when=_missed)
