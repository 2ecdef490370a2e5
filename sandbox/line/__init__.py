"""A stand-in of LINE's Messaging API that honours the retry key and shows what was pushed."""
