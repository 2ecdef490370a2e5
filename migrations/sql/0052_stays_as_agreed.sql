-- A plan's price and class of tax can be changed from now on: what is booked keeps its own. And a stay
-- may be of more than one person.

alter table stays
    add column tax_class text not null default 'standard',
    add column unit_price integer,
    add column persons smallint not null default 1,
    add constraint ck_stays_tax_class
        check (tax_class in ('standard', 'reduced', 'untaxed')) not valid,
    add constraint ck_stays_unit_price check (unit_price >= 0) not valid,
    add constraint ck_stays_persons check (persons between 1 and 50) not valid;

-- Of what is over, the price of a unit is asked no more; its class is, where money goes back.
update stays s
set tax_class = p.tax_class,
    unit_price = case when s.state in ('reserved', 'admitted', 'no_show') then p.unit_price end
from plans p
where p.facility_id = s.facility_id and p.id = s.plan_id
  and (s.state in ('reserved', 'admitted', 'no_show') or p.tax_class <> 'standard');
