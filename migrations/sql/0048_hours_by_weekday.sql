-- Opening hours by weekday, Monday first: closed all day where both are null, all day from midnight
-- to midnight. What was said of every day is said of each. The week stays in the entrance's own row:
-- that is what a change compares and locks and what the gate reads, and a week that never opens, or
-- half of one, cannot be written. As rows of their own, a lost one would read as "never closes".
alter table entrances drop constraint ck_entrances_hours;
alter table entrances
    alter column opens type time without time zone[]
        using case when opens is not null then array_fill(opens, array[7]) end,
    alter column closes type time without time zone[]
        using case when closes is not null then array_fill(closes, array[7]) end;
alter table entrances
    add constraint ck_entrances_hours check ((opens is null) = (closes is null)),
    add constraint ck_entrances_week check (
        opens is null
        or array_dims(opens) is not distinct from '[1:7]'
        and array_dims(closes) is not distinct from '[1:7]'
        and array_positions(opens, null) = array_positions(closes, null)
        and cardinality(array_positions(opens, null)) < 7),
    add constraint ck_entrances_stretches check (
        (opens[1] <> closes[1] or opens[1] = '00:00')
        and (opens[2] <> closes[2] or opens[2] = '00:00')
        and (opens[3] <> closes[3] or opens[3] = '00:00')
        and (opens[4] <> closes[4] or opens[4] = '00:00')
        and (opens[5] <> closes[5] or opens[5] = '00:00')
        and (opens[6] <> closes[6] or opens[6] = '00:00')
        and (opens[7] <> closes[7] or opens[7] = '00:00'));
