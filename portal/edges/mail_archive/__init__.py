"""What a mail server that keeps its mail can tell of it. Reading only: it speaks to nobody."""

from portal.edges.mail_archive.port import MailArchive, Taken

__all__ = ["MailArchive", "Taken"]
