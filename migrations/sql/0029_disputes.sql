-- Disputes: a bank takes a card payment back, and may give it up again.

CREATE TABLE disputes (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    payment_id UUID NOT NULL,
    provider_dispute_id TEXT NOT NULL,
    amount BIGINT NOT NULL,
    currency TEXT NOT NULL,
    status TEXT NOT NULL,
    refundable BOOLEAN NOT NULL,
    reason TEXT NOT NULL,
    opened_at TIMESTAMP WITH TIME ZONE NOT NULL,
    answer_by TIMESTAMP WITH TIME ZONE,
    livemode BOOLEAN NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_disputes PRIMARY KEY (id),
    CONSTRAINT uq_disputes_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT uq_disputes_provider_dispute_id UNIQUE (provider_dispute_id),
    CONSTRAINT fk_disputes_facility_id_payment_id_payments FOREIGN KEY(facility_id, payment_id) REFERENCES payments (facility_id, id),
    CONSTRAINT ck_disputes_status CHECK (status in ('warning_needs_response', 'warning_under_review', 'warning_closed', 'needs_response', 'under_review', 'won', 'lost', 'prevented')),
    CONSTRAINT ck_disputes_amount CHECK (amount > 0),
    CONSTRAINT fk_disputes_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE INDEX ix_disputes_payment ON disputes (facility_id, payment_id);
CREATE INDEX ix_disputes_open ON disputes (facility_id, answer_by) WHERE status in ('warning_needs_response', 'warning_under_review', 'needs_response', 'under_review');

alter table disputes enable row level security;
alter table disputes force row level security;
create policy owner_all on disputes to current_user using (true) with check (true);
create policy own_facility on disputes to portal_app
    using (facility_id = current_facility()) with check (facility_id = current_facility());
revoke all on disputes from public;
grant select, insert, update on disputes to portal_app;

alter table ledger_lines add column dispute_id UUID;
alter table ledger_lines add constraint fk_ledger_lines_facility_id_dispute_id_disputes
    foreign key (facility_id, dispute_id) references disputes (facility_id, id);
alter table ledger_lines drop constraint ck_ledger_lines_kind;
alter table ledger_lines add constraint ck_ledger_lines_kind
    check (kind in ('charge', 'charge_reversed', 'fee', 'deposit', 'payment', 'cash', 'cash_returned', 'refund', 'refund_reversed', 'chargeback', 'chargeback_reversed'));
alter table ledger_lines drop constraint ck_ledger_lines_sign;
alter table ledger_lines add constraint ck_ledger_lines_sign
    check (case when kind in ('charge', 'fee', 'cash_returned', 'refund', 'chargeback') then amount > 0 else amount < 0 end);
alter table ledger_lines add constraint ck_ledger_lines_dispute
    check ((kind in ('chargeback', 'chargeback_reversed')) = (dispute_id is not null));
create unique index uq_ledger_lines_dispute on ledger_lines (dispute_id, kind) where dispute_id is not null;

alter table divergences drop constraint ck_divergences_kind;
alter table divergences add constraint ck_divergences_kind
    check (kind in ('payment_not_here', 'payment_not_there', 'payment_differs', 'refund_not_here', 'refund_not_there', 'refund_differs', 'dispute_differs', 'code_stray', 'code_missing', 'code_differs', 'code_pin_differs', 'message_not_here', 'message_not_there', 'subscription_not_here', 'subscription_not_there', 'subscription_differs'));
