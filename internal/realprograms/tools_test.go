package realprograms

import "testing"

func TestDeveloperTools(t *testing.T) {
	t.Parallel()
	for _, w := range []work{
		// How many objects a pack holds as deltas depends on threads; what it
		// holds does not, and that is printed.
		{name: "git", needs: []string{"git"}, uses: []string{"git"}, script: `
export GIT_AUTHOR_DATE='@1000000000 +0000' GIT_COMMITTER_DATE='@1000000000 +0000'
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=c GIT_COMMITTER_EMAIL=c@example.com
git config --global init.defaultBranch main; git config --global pack.threads 4; git config --global gc.auto 0
git init -q repo; cd repo
for i in $(seq $((12 * SCALE))); do
  seq $((i * 100)) $((i * 150)) > "file$((i % 5))"; cp -r /usr/include/asm-generic "copy$i"
  git add -A; git commit -qm "change $i"
done
git checkout -qb side HEAD~3; echo side > side; git add side; git commit -qm side; git checkout -q main
git merge -q --no-edit side; git rebase -q side~1 side; git checkout -q main
git tag -a -m tag v1; git stash list
git log --stat --format="%H %an %s" | md5sum
git blame file1 | md5sum; git diff HEAD~4 | md5sum; git grep -c 1 | md5sum; git log -p --all -S17 | md5sum
cd ..; git clone -q --no-local repo clone 2>&1; git clone -q --bare --depth 3 file://$PWD/repo shallow.git 2>&1
cd clone; git gc -q --aggressive 2>&1; git repack -adfq --depth=50 --window=50; git fsck --full --strict 2>&1
git rev-list --objects --all | sort | sha256sum; git cat-file --batch-check --batch-all-objects | sort | sha256sum
git bundle create -q ../b.bundle --all; git fetch -q ../b.bundle main; git archive HEAD | sha256sum
git format-patch -o ../patches -q HEAD~5; cd ..; cat patches/* | md5sum
printf 'blob\nmark :1\ndata 5\nhello\n' | git -C repo fast-import --quiet
git -C repo worktree add -q ../tree HEAD 2>&1; git -C tree status --short; git -C repo cherry-pick nonsense || echo "status $?"
rm -rf repo clone shallow.git tree b.bundle
`},
		{name: "gcc", needs: []string{"gcc", "g++", "ld"}, uses: []string{"gcc", "cc1", "as", "ld", "cc1plus"}, script: gccWork},
		{name: "clang", needs: []string{"clang", "clang++"}, uses: []string{"clang"}, script: clangWork},
		{name: "make", needs: []string{"make", "gcc"}, uses: []string{"make"}, script: `
for i in {1..6}; do echo "int f$i(void) { return $i; }" > f$i.c; done
printf 'int main(void) { return 0; }\n' > main.c
cat > Makefile <<'MAKE'
objects := $(patsubst %.c,%.o,$(sort $(wildcard *.c)))
shell := $(shell echo expanded)
prog: $(objects) ; gcc -o $@ $^
%.o: %.c ; gcc -O1 -c $< -o $@
clean: ; rm -f $(objects) prog
MAKE
make -j2 --output-sync | sort; ./prog; make -s clean; make -n | sort; make nothing || echo "status $?"
`},
		{name: "gdb", needs: []string{"gdb", "gcc"}, uses: []string{"gdb", "target"}, script: `
cat > target.c <<'C'
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; char name[16]; };
int depth(struct node *n) { return n ? 1 + depth(n->next) : 0; }
int main(void) {
	struct node *head = NULL;
	for (int i = 0; i < 20; i++) {
		struct node *n = calloc(1, sizeof *n);
		strcpy(n->name, "node");
		n->next = head, head = n;
	}
	return depth(head) - 20;
}
C
gcc -g -O0 target.c -o target
gdb -nx -batch -iex 'set debuginfod enabled off' -ex 'set confirm off' -ex 'break depth if n == 0' -ex run \
  -ex 'bt 3' -ex 'up' -ex 'info locals' -ex 'print *n' -ex 'ptype n' -ex 'python print(gdb.parse_and_eval("n[0]")["name"].string())' \
  -ex 'call (int)depth(n)' -ex 'info line main' -ex 'disassemble main' -ex 'watch n->next' \
  -ex 'info scope main' -ex continue ./target 2>&1
`, varies: []string{`0x[0-9a-f]+`, `process [0-9]+`, `warning: (Error disabling|File ).*`}},
		{name: "openssl", needs: []string{"openssl"}, uses: []string{"openssl"}, script: `
seq $((50000 * SCALE)) > data
for digest in sha256 sha3-512 blake2b512 md5; do openssl dgst -$digest data; done
openssl enc -aes-256-cbc -pbkdf2 -S 0102030405060708 -k secret -in data | tee encrypted | openssl enc -d -aes-256-cbc -pbkdf2 -S 0102030405060708 -k secret | cmp - data
openssl genrsa -out key.pem 2048 2>/dev/null; openssl req -new -x509 -key key.pem -subj /CN=example -days 30 -out cert.pem
openssl dgst -sha256 -sign key.pem data > signature; openssl x509 -in cert.pem -pubkey -noout > public.pem
openssl dgst -sha256 -verify public.pem -signature signature data
openssl verify -CAfile cert.pem cert.pem; openssl x509 -in cert.pem -noout -subject; openssl ecparam -name prime256v1 -genkey -noout | openssl ec -noout -check 2>&1
openssl pkcs12 -export -inkey key.pem -in cert.pem -passout pass:x -out both.p12; openssl pkcs12 -in both.p12 -passin pass:x -nodes -nocerts | openssl rsa -modulus -noout | cmp - <(openssl rsa -in key.pem -modulus -noout)
openssl list -digest-algorithms | md5sum; openssl asn1parse -in cert.pem >/dev/null; openssl nonsense 2>/dev/null || echo "status $?"
rm key.pem cert.pem signature public.pem both.p12
`},
	} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			w.compareSettings(t)
		})
	}
}

// The sources are this repository's, and the headers of the C and C++
// libraries.
const sources = `
cat > regex.cpp <<'CPP'
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <vector>
template <int N> struct fold { static constexpr int value = fold<N - 1>::value + N; };
template <> struct fold<0> { static constexpr int value = 0; };
int main()
{
	std::map<std::string, std::vector<int>> seen;
	const std::string text = "one 1 two 22 three 333";
	const std::regex words("([a-z]+) ([0-9]+)");
	for (std::sregex_iterator it(text.begin(), text.end(), words), end; it != end; ++it)
		seen[(*it)[1]].push_back(std::stoi((*it)[2]));
	for (auto &[word, numbers] : seen)
		std::cout << word << ' ' << *std::max_element(numbers.begin(), numbers.end()) << ' ' << fold<200>::value << '\n';
	return std::make_unique<int>(0) ? 0 : 1;
}
CPP
{
  for h in stdio stdlib string math pthread signal netdb sys/socket sys/stat linux/perf_event elf; do echo "#include <$h.h>"; done
  for i in $(seq $((60 * SCALE))); do
    echo "int f$i(const char *s, int n) { int a[16] = {0}; for (int i = 0; i < n; i++) { a[i % 16] += s[i] * $i; if (a[i % 16] > n) a[i & 7] ^= i; } switch (n % 5) { case 1: return a[1]; case 2: return strlen(s) + a[2]; case 3: return atoi(s); } return a[n % 16]; }"
  done
} > many.c
printf 'int main(void) { return undeclared + ; }\n' > broken.c
`

const gccWork = sources + `
gcc -O2 -g -Wall -c many.c -o many.o
gcc -O1 -S -fverbose-asm many.c -o many.s
g++ -std=c++20 -O1 -g regex.cpp -o regex -lpthread; ./regex
gcc -O1 -flto -c many.c -o lto.o; gcc -O1 -flto=2 -shared -fPIC lto.o -o liblto.so; nm liblto.so | wc -l
ar rc libmany.a many.o; objdump -d many.o | md5sum; readelf -wi many.o | md5sum; strip -g many.o -o stripped.o
gcc -c broken.c || echo "status $?"
rm -f lto.o # names itself at random
`

const clangWork = sources + `
clang -O2 -g -c many.c -o many.o
clang++ -std=c++17 -O1 -g regex.cpp -o regex; ./regex
clang -c broken.c || echo "status $?"
`
