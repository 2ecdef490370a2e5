-- Messages beside the mail archive, codes of other digits; and a code is never let be.

ALTER TABLE divergences
    ADD COLUMN message_id UUID,
    ADD CONSTRAINT fk_divergences_facility_id_message_id_outbox FOREIGN KEY(facility_id, message_id) REFERENCES outbox (facility_id, id),
    DROP CONSTRAINT ck_divergences_kind,
    ADD CONSTRAINT ck_divergences_kind CHECK (kind in ('payment_not_here', 'payment_not_there', 'payment_differs', 'refund_not_here', 'refund_not_there', 'refund_differs', 'code_stray', 'code_missing', 'code_differs', 'code_pin_differs', 'message_not_here', 'message_not_there')),
    ADD CONSTRAINT ck_divergences_code_never_let_be CHECK (not let_be or kind not like 'code%');
