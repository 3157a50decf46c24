CREATE TABLE people(id INTEGER PRIMARY KEY, name TEXT, age INT, city TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
INSERT INTO people(name, age, city) SELECT 'name' || i, (i * 37) % 80, CASE i % 3 WHEN 0 THEN 'Rome' WHEN 1 THEN 'Oslo' ELSE 'Bern' END FROM n;
CREATE INDEX by_age ON people(age, city);
SELECT city, count(*), avg(age), group_concat(id) FROM people WHERE age BETWEEN 20 AND 40 GROUP BY city HAVING count(*) > 2 ORDER BY 2 DESC, 1;
SELECT a.name, b.name FROM people a JOIN people b ON a.age = b.age AND a.id < b.id WHERE a.city = 'Oslo' ORDER BY a.id LIMIT 7;
UPDATE people SET name = upper(name) || printf('%05d', age) WHERE id % 10 = 0;
DELETE FROM people WHERE age < 10;
SELECT name, rank() OVER (PARTITION BY city ORDER BY age DESC) AS r FROM people WHERE id < 30 ORDER BY city, r, id LIMIT 12;
BEGIN; INSERT INTO people VALUES(1000, 'x', NULL, 'Y'); ROLLBACK;
SELECT count(*), total(age), max(name) FROM people;
