"""Seam's own fake behind a thin proxy: real webhooks, slow locks and every kind of failure."""
