"""The proof that facilities are kept apart: made at start-up, or the portal does not start."""

from pathlib import Path
from uuid import uuid4

from alembic.config import Config as AlembicConfig
from alembic.script import ScriptDirectory
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from portal.config import UnsafeConfigurationError
from portal.db import Tx, transaction

# Shaped as `Tx.enter` wants it: the facility, and the row, which here is the facility again.
THIS = "(select cast(:id as uuid) as facility_id, cast(:id as uuid) as id)"

MIGRATIONS = Path(__file__).parent.parent / "migrations"


def prove() -> None:
    """Raise UnsafeConfigurationError with one clear line unless every guard stands."""
    try:
        require_head()
        require_indexes()
        require_guards()
        require_canary()
    except SQLAlchemyError as fault:
        reason = str(getattr(fault, "orig", fault)).strip().splitlines()[0]
        raise UnsafeConfigurationError(f"isolation could not be proven: {reason}") from None


def require_head() -> None:
    """The database is at exactly the migrations of this code."""
    heads = set(_script().get_heads())
    with transaction(None) as tx:
        if not tx.scalar("select to_regclass('alembic_version') is not null"):
            raise UnsafeConfigurationError(
                "the database is empty: run `flask --app app db upgrade`"
            )
        found = {row.version_num for row in tx.rows("select version_num from alembic_version")}
    if found != heads:
        raise UnsafeConfigurationError(
            f"migrations: the database is at {_list(found)}, the code at {_list(heads)}"
        )


def require_indexes() -> None:
    """Every index holds. A build that was cut short leaves one that neither finds nor forbids, and
    `if not exists` takes it for the real one."""
    with transaction(None) as tx:
        broken = tx.rows(
            """
            select c.relname from pg_index i
            join pg_class c on c.oid = i.indexrelid
            join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'public'
            where not (i.indisvalid and i.indisready)
              -- One that is being built is not valid yet; which one, only its builder is told.
              and not exists (select 1 from pg_stat_progress_create_index
                              where datname = current_database())
            order by 1
            """
        )
    if broken:
        names = ", ".join(row.relname for row in broken)
        raise UnsafeConfigurationError(f"migrations: not valid, to be built again: {names}")


def require_guards() -> None:
    """The role and the catalogue: nothing lets one facility see another."""
    with transaction(None) as tx:
        _require_plain_role(tx)
        _require_policies(tx)
        _require_pinned_functions(tx)


def require_canary() -> None:
    """Write a guest in one facility, look for it from another, undo both."""
    here, there = uuid4(), uuid4()
    try:
        with transaction(here) as tx:
            _insert_canary(tx, here)
            tx.enter(THIS, id=there)
            if tx.scalar("select count(*) from guests") or tx.scalar(
                "select count(*) from facilities"
            ):
                raise UnsafeConfigurationError("isolation: one facility sees another's rows")
            _require_refused_write(tx, here)
            raise _UndoError
    except _UndoError:
        return


class _UndoError(Exception):
    pass


def _insert_canary(tx: Tx, house: object) -> None:
    tx.run(
        """
        insert into facilities (id, slug, name_ja, name_en, kind, time_zone)
        values (:id, :slug, 'canary', 'canary', 'canary', 'Asia/Tokyo')
        """,
        id=house,
        slug=f"canary-{house}",
    )
    tx.run(
        "insert into guests (facility_id, name, search_key) values (:id, 'canary', 'canary')",
        id=house,
    )


def _require_refused_write(tx: Tx, elsewhere: object) -> None:
    try:
        with tx.savepoint():
            tx.run(
                "insert into guests (facility_id, name, search_key) values (:id, 'c', 'c')",
                id=elsewhere,
            )
    except DBAPIError:
        return
    raise UnsafeConfigurationError("isolation: one facility writes another's rows")


def _require_plain_role(tx: Tx) -> None:
    role = tx.row(
        """
        select rolname, rolsuper, rolbypassrls, rolcreaterole,
               exists (select 1 from pg_class c
                       join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'public'
                       where pg_has_role(r.oid, c.relowner, 'member')) as owns
        from pg_roles r where rolname = current_user
        """
    )
    if role is None:
        raise UnsafeConfigurationError("isolation: the session's role is not in the catalogue")
    faults = {
        "is a superuser": role.rolsuper,
        "has BYPASSRLS": role.rolbypassrls,
        "may create roles": role.rolcreaterole,
        "owns tables, or is a member of their owner": role.owns,
    }
    for fault, holds in faults.items():
        if holds:
            raise UnsafeConfigurationError(
                f"isolation: the role {role.rolname} of DATABASE_URL {fault}"
            )


def _require_policies(tx: Tx) -> None:
    """ENABLE, FORCE and a policy for this role on facilities and on each table with a facility."""
    bare = tx.rows(
        """
        select c.relname from pg_class c
        join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'public'
        where c.relkind in ('r', 'p')
          and (c.relname = 'facilities' or exists (
                select 1 from pg_attribute a
                where a.attrelid = c.oid and a.attname = 'facility_id' and not a.attisdropped))
          and not (c.relrowsecurity and c.relforcerowsecurity and exists (
                select 1 from pg_policy p join pg_roles r on r.oid = any (p.polroles)
                where p.polrelid = c.oid and r.rolname = current_user))
        order by 1
        """
    )
    if bare:
        names = ", ".join(row.relname for row in bare)
        raise UnsafeConfigurationError(f"isolation: no forced row-level security on {names}")


def _require_pinned_functions(tx: Tx) -> None:
    loose = tx.rows(
        """
        select p.proname from pg_proc p
        join pg_namespace n on n.oid = p.pronamespace and n.nspname = 'public'
        where p.prosecdef
          and not exists (select 1 from unnest(coalesce(p.proconfig, '{}')) setting
                          where setting like 'search_path=%')
        order by 1
        """
    )
    if loose:
        names = ", ".join(row.proname for row in loose)
        raise UnsafeConfigurationError(f"isolation: search_path is not pinned in {names}")


def _script() -> ScriptDirectory:
    config = AlembicConfig()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return ScriptDirectory.from_config(config)


def _list(revisions: set[str]) -> str:
    return ", ".join(sorted(revisions)) or "nothing"
