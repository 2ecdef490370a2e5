"""Words to guests, what waits for a person, and the housekeeping."""

from dataclasses import replace
from uuid import uuid4

from portal.jobs import drain, sweeps
from portal.verbs import (
    attention,
    blocklist,
    cancellation_policies,
    entrances,
    events,
    facilities,
    messages,
    stay_plans,
)
from tests.matrix import differences, scenes
from tests.matrix.act import Act, form, job

ACTS = (
    job("drain outbox mail", scenes.a_mail_to_send, drain.drain, "outbox"),
    job("drain outbox mails", scenes.mails_to_send, drain.drain, "outbox"),
    job("drain outbox push", scenes.a_push_to_send, drain.drain, "outbox"),
    job("drain outbox push blocked", scenes.a_push_to_somebody_who_blocked_us, drain.drain,
        "outbox"),
    form("facilities.choose_benefits", scenes.a_house_of_managers, facilities.choose_benefits,
        "wish"),
    Act(
        "entrances.create",
        scenes.a_new_entrance,
        lambda do: do.form(entrances.create, do["wanted"]),
        lambda do: do.form(entrances.create, replace(do["wanted"], form_key=uuid4())),
    ),
    Act(
        "blocklist.add",
        scenes.a_new_entry,
        lambda do: do.form(blocklist.add, do["wanted"]),
        lambda do: do.form(blocklist.add, replace(do["wanted"], form_key=uuid4())),
    ),
    form("blocklist.lift", scenes.an_entry, blocklist.lift, "entry", "seen", "why"),
    Act(
        "blocklist.add_ground",
        scenes.a_new_entry,
        lambda do: do.form(blocklist.add_ground, *do["new_ground"]),
        lambda do: do.form(blocklist.add_ground, *do["new_ground"]),
    ),
    form("blocklist.retire_ground", scenes.a_new_entry, blocklist.retire_ground, "ground"),
    form("entrances.change", scenes.an_entrance, entrances.change, "entrance", "seen", "later"),
    form("cancellation_policies.create", scenes.a_policy, cancellation_policies.create, "wanted"),
    form("cancellation_policies.change", scenes.a_policy, cancellation_policies.change, "policy",
        "seen", "terms"),
    form("cancellation_policies.choose", scenes.a_policy, cancellation_policies.choose, "plan",
        "nothing", "policy"),
    Act(
        "stay_plans.create",
        scenes.a_plan_of_stays,
        lambda do: do.form(stay_plans.create, do["wanted"]),
        lambda do: do.form(stay_plans.create, replace(do["wanted"], form_key=uuid4())),
    ),
    form("stay_plans.change", scenes.a_plan_of_stays, stay_plans.change, "plan", "seen", "terms"),
    form("stay_plans.withdraw", scenes.a_plan_of_stays, stay_plans.withdraw, "plan", "seen"),
    form("stay_plans.sell_again", scenes.a_plan_withdrawn, stay_plans.sell_again, "plan", "seen"),
    form("messages.resend", scenes.a_message_given_up, messages.resend, "message"),
    form("messages.drop", scenes.a_message_given_up, messages.drop, "message"),
    form("events.replay", scenes.a_dead_letter, events.replay, "letter"),
    form("events.dismiss", scenes.a_dead_letter, events.dismiss, "letter"),
    form("attention.let_be", scenes.a_refund_that_failed, attention.let_be, "refund"),
    job("sweeps.catch_up", scenes.paid_and_unheard, sweeps.catch_up),
    job("sweeps.prune", scenes.an_old_event, sweeps.prune),
    # Nothing moves out there meanwhile: the second look need not wait.
    job("sweeps.compare", differences.a_stray_code, sweeps.compare, 0.0),
)  # fmt: skip
