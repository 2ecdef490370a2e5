"""Subscriptions and their invoices at the card provider: the port and its Stripe adapter."""
