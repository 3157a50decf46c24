-- A small shop: filled, indexed, asked, changed, asked again.
create table customer(id integer primary key, name text, city text);
create table line(id integer primary key, customer integer, item text, amount integer, note text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000)
insert into customer select i, 'customer ' || i, 'city ' || (i * 7919 % 200) from n;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 120000)
insert into line select i, 1 + i * 7919 % 5000, 'item ' || (i * 104729 % 1000), i * 31 % 97, substr('a note on an order line, of any length', 1, i % 38) from n;
create index line_customer on line(customer);
create index line_item on line(item, amount);
select city, count(*), sum(amount) from customer join line on line.customer = customer.id group by city order by 3 desc, 1;
select item, group_concat(distinct amount) from line group by item order by item limit 300;
select name, (select max(note) from line where customer = customer.id) from customer order by name limit 2000;
begin;
update line set note = note || ' changed ' || upper(item) where amount % 5 = 0;
delete from line where amount > 90;
commit;
select length(note), count(*) from line group by 1 order by 1;
select c.city, json_group_array(l.item) from customer c join line l on l.customer = c.id where l.amount < 3 group by c.city order by 1;
select count(*) from line a join line b on a.item = b.item and a.amount = b.amount and a.id < b.id where a.amount < 40;
