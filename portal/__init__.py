"""Monban: a portal for houses that let people in through smart locks."""
