"""What the gate decides on of the way in to a door, as SQL: for the verbs that ask it and the pages
that show what it would say."""


def inside(entrance: str, stay: str) -> str:
    """How many persons take up room behind an entrance, `stay` left out: whoever is in house, and
    whoever has just booked at the entrance to come in. Both are expressions of SQL."""
    return f"""(
        select coalesce(sum(inside.persons), 0) from stays inside
        join spaces place on place.id = inside.space_id
        join doors door on door.id = place.door_id
        where door.entrance_id = {entrance} and inside.id is distinct from {stay}
          and (inside.state = 'admitted' or (
              inside.state = 'reserved' and inside.source = 'walk_in' and inside.period @> now())))
    """


def facts(plan: str) -> str:
    """What the gate decides on of the entrance `e` that leads to a door, `plan` an expression."""
    return f"""
        e.id as entrance_id, e.mode as entrance_mode, e.opens as entrance_opens,
        e.closes as entrance_closes, e.capacity as entrance_capacity,
        {plan} is null or exists (
            select 1 from entrance_plans sold
            where sold.entrance_id = e.id and sold.plan_id = {plan}) as plan_sold
    """


def of_stay() -> str:
    """The same for a stay `s`, and how many others are behind the entrance."""
    return f"""
        {facts("s.plan_id")},
        case when e.capacity is null then 0 else {inside("e.id", "s.id")} end as entrance_inside
    """
