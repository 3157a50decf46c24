package realprograms

import "testing"

func TestShell(t *testing.T) {
	t.Parallel()
	work{name: "bash", uses: []string{"bash", "sed"}, script: `
declare -A count
for i in $(seq $((150 * SCALE))); do
  word=$(echo "w$((i % 17))" | sed s/w/x/)
  count[$word]=$((${count[$word]:-0} + 1))
done
for key in $(printf '%s\n' "${!count[@]}" | sort); do echo "$key=${count[$key]}"; done
f() { local n=$1; ((n < 2)) && echo "$n" && return; echo $(($(f $((n - 1))) + $(f $((n - 2))))); }
f 8
for i in {1..100}; do (exit $((i % 3))) || status+=$?; done; echo "$status"
while read -r a b; do printf '%s<%s>\n' "$b" "$a"; done < <(paste -d' ' <(seq 50) <(seq 50 | tac))
text=$(cat <<HERE
$(for i in {1..400}; do echo "line $i ${RANDOM:0:0}"; done)
HERE
)
echo "${#text} ${text//line/LINE}" | md5sum
[[ "key=value; other=2" =~ ([a-z]+)=([a-z]+) ]] && echo "${BASH_REMATCH[@]}"
trap 'echo caught' USR1; kill -USR1 $$
coproc tr a-z A-Z; echo coprocess >&"${COPROC[1]}"; exec {COPROC[1]}>&-; cat <&"${COPROC[0]}"; wait
bash -c 'ulimit -c 0; kill -TERM $$' || echo "status $?"
for i in {1..20}; do sleep 0 & done; wait
array=(); for i in {1..3000}; do array+=("$i" "element $i"); done; unset 'array[7]'; echo "${#array[@]} ${array[*]: -4}"
for ((i = 0; i < 2000; i++)); do x+=$i; ((${#x} < 500)) || x=${x:250}; done; echo "$x"
eval 'printf -v padded "%08d" 42'; echo "$padded"; type -t f; alias | wc -l; compgen -c | sort -u | md5sum
no_such_command || echo "status $?"
`}.compareSettings(t)
}

func TestTextTools(t *testing.T) {
	t.Parallel()
	for _, w := range []work{
		{name: "coreutils", uses: []string{"sort", "uniq", "join", "split", "sha256sum", "xargs", "grep", "sed", "tar", "diff", "shuf"}, script: `
set +o pipefail # head ends many a pipe
yes 'the quick brown fox jumps over the lazy dog' | head -n $((3000 * SCALE)) | tr ' ' '\n' > words
seq $((100000 * SCALE)) > random
seq $((60000 * SCALE)) | shuf --random-source=random > numbers
sort --parallel=4 -S 256K -n numbers | sha256sum
sort --parallel=4 -R --random-source=random numbers | sha256sum
sort --parallel=4 -S 10M -k1.2,1.4 -s numbers > sorted
sort words | uniq -c | sort -k1nr,1 -k2
sort -u numbers | split -l 5000 - part. ; sort -m part.* | md5sum
join <(seq 1000 | sort) <(seq 500 1500 | sort) | wc -l
comm -12 <(seq 1000 | sort) <(seq 500 1500 | sort) | tail -n 2
printf 'a b\nb c\nc d\n' | tsort; factor 1234567890123457 2305843009213693951
fmt -w 60 words | md5sum; ptx words | head -n 2000 | md5sum; nl words | cut -f2 | tac | od -c | md5sum
find . -name 'part.*' -print0 | sort -z | xargs -0 -P4 -n1 wc -l | sort | md5sum
grep -E '(a|b).*(1|2){2}' -n numbers words | md5sum || true
grep -P '^(\d)\1+$' numbers | sort -n | md5sum
sed -E ':a; s/^([0-9]+)([0-9]{3})/\1,\2/; ta' numbers | md5sum
tar --sort=name --mtime=@0 --owner=0 --group=0 -czf parts.tar.gz part.*; tar tzf parts.tar.gz | md5sum
diff <(seq 3000) <(seq 3000 | sed '7d;s/^1.*5$/x/') | md5sum || true
ls --color=always -x / | wc -w >/dev/null; stat -c %s sorted; df . >/dev/null; dd if=numbers bs=1000 count=20 status=none | sha256sum
touch -d @0 words numbers sorted random; du --apparent-size -b sorted; env -i expr 7 '*' 6; date -d @86400 +%c; csplit -s words 5 '/dog/'
rm -f parts.tar.gz
`},
		{name: "gawk", needs: []string{"gawk"}, uses: []string{"gawk"}, script: `
seq $((30000 * SCALE)) | gawk '
	function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
	{ sum += $1; count[$1 % 1013] = count[$1 % 1013] " " $1; text = text substr($1, 1, 1) }
	/7{2}/ { gsub(/7/, "seven"); seen[$0]++ }
	END {
		PROCINFO["sorted_in"] = "@ind_num_asc"
		for (k in count) print k, length(count[k]), split(count[k], parts)
		PROCINFO["sorted_in"] = "@ind_str_asc"
		for (k in seen) print k
		print sum, length(text), fib(18), sprintf("%-10s|%5.2f|%x", "s", 3.14159, 255), toupper("abc")
		while (("seq 5 | tac" | getline line) > 0) print "got", line
		delete count; for (i = 0; i < 2000; i++) deep[i][i % 7] = i; print length(deep), strftime("%Y", 0, 1)
		print match("foo123bar", /([a-z]+)([0-9]+)/, m), m[1], m[2]; n = asort(seen, s); print n
		print "to sort" | "sort"; close("sort"); "date -d @0 +%Y" | getline y; print y
	}'
printf 'a,"b,c",d\n1,"2,3",4\n' | gawk -v FPAT='([^,]+)|("[^"]+")' '{ print $2; $3 = "x"; print }'
gawk -M 'BEGIN { x = 2 ^ 521 - 1; print x, x % 1000003 }'
`},
		{name: "sqlite3", needs: []string{"sqlite3"}, uses: []string{"sqlite3"}, script: `
sqlite3 data.db "
pragma cache_size = 200;
create table item(id integer primary key, name text, price real, grp int);
with recursive n(i) as (select 1 union all select i + 1 from n where i < $((15000 * SCALE)))
  insert into item select i, printf('item %05d %s', i, hex(i * 7919 % 65536)), i * 1.25, i % 97 from n;
create index by_name on item(name); create index by_grp on item(grp, price desc);
create trigger log after update on item begin delete from item where id = old.id + 100000000; end;
update item set price = price + 1 where grp in (select grp from item group by grp having count(*) % 2);
delete from item where id % 5 = 0;
select grp, count(*), sum(price), group_concat(substr(name, 6, 5), '-') from item where grp < 3 group by grp;
select a.id, b.name from item a join item b on a.id = b.id + 1 where a.name like '%FF%' order by b.name limit 20;
select id, rank() over (partition by grp order by price desc) r from item order by r, id limit 30;
create virtual table doc using fts5(body); insert into doc select name || ' ' || name from item limit 3000;
select count(*) from doc where doc match 'item AND 00*'; insert into doc(doc) values('optimize');
select json_group_array(json_object('i', id, 'n', name)) from (select * from item limit 50);
select * from json_tree('{\"a\":[1,2,{\"b\":null}]}');
vacuum; analyze; pragma integrity_check; explain query plan select * from item where name = 'x';
create virtual table box using rtree(id, x0, x1); insert into box select id, id, id + 3 from item limit 2000;
select count(*) from box where x0 > 100 and x1 < 900;
begin; delete from item; rollback; select count(*) from item;
"
sqlite3 data.db .dump | sha256sum; sqlite3 data.db .schema
echo 'select 1; select nope; .tables' | sqlite3 data.db || echo "status $?"
`},
		{name: "compressors", needs: []string{"pigz", "xz", "zstd"}, uses: []string{"pigz", "xz", "zstd", "bzip2"}, script: `
seq $((120000 * SCALE)) | sed 's/$/ some text that repeats itself/;s/7/seven/' > text
head -c $((600000 * SCALE)) text > short
pigz -p 4 -b 128 -n -c text > text.gz; pigz -d -c text.gz | cmp - text
pigz -p 3 -11 -n -c <(head -c 60000 text) > zopfli.gz; pigz -p 4 -z -c short > short.zz; pigz -l text.gz | wc -l
xz -T 4 --block-size=300KiB -1 -c text > text.xz; xz -T 4 -d -c text.xz | cmp - text; xz -9e -c short > short.xz
zstd -q -T4 -B512KB -3 text -o text.zst; zstd -q -d -c text.zst | cmp - text; zstd -q -T2 --long --ultra -20 short -o short.zst
gzip -n -c short | gzip -dc | cmp - short; bzip2 -c short > short.bz2; bzip2 -dc short.bz2 | cmp - short
pigz -d -c /bin/true || echo "status $?"
`},
	} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			w.compareSettings(t)
		})
	}
}
