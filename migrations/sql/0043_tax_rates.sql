-- The law's, and so no house's: rates of consumption tax by the day from which they hold. The next
-- change of the law is another row.
create table consumption_tax_rates (
    tax_class text not null,
    valid_from date not null,
    percent smallint not null,
    constraint pk_consumption_tax_rates primary key (tax_class, valid_from),
    constraint ck_consumption_tax_rates_tax_class check (tax_class in ('standard', 'reduced')),
    constraint ck_consumption_tax_rates_percent check (percent between 0 and 99)
);

-- https://www.nta.go.jp/taxes/shiraberu/taxanswer/shohi/6303.htm
insert into consumption_tax_rates (tax_class, valid_from, percent) values
    ('standard', '1989-04-01', 3),
    ('standard', '1997-04-01', 5),
    ('standard', '2014-04-01', 8),
    ('standard', '2019-10-01', 10),
    ('reduced', '2019-10-01', 8);

revoke all on consumption_tax_rates from public;
grant select on consumption_tax_rates to portal_app;

alter table plans add column tax_class text not null default 'standard',
    add constraint ck_plans_tax_class check (tax_class in ('standard', 'reduced', 'untaxed'));

alter table membership_plans add column tax_class text not null default 'standard',
    add constraint ck_membership_plans_tax_class
        check (tax_class in ('standard', 'reduced', 'untaxed'));
