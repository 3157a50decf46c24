package verdict_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
)

// An exit is followed to what the condition tested that led to it, through the functions
// that only hand on that something was wrong, and past what decides nothing. It is the cause only where it came
// from outside.
func TestCausesOfExits(t *testing.T) {
	crashtest.TracesAccesses(t)
	programs := map[string]string{"die.c": `
#include <stdio.h>
#include <stdlib.h>
static int verbose; static FILE *log_file;
struct config { int workers, limit; };
__attribute__((noinline)) static void die(const char *why, int n)
{
	if (log_file)
		fputs(why, log_file);
	fprintf(stderr, "%s: %d\n", why, n);
	exit(2);
}
__attribute__((noinline)) static void check(struct config *c)
{
	if (c->workers > c->limit) { // CAUSE
		if (verbose)
			puts("sizes are checked");
		die("too many workers", c->workers);
	}
}
int main(int argc, char **argv)
{
	struct config c = { .limit = 8 };
	verbose = argc > 3;
	c.workers = atoi(argv[1]) * 4;
	check(&c);
	return 0;
}
`, "code.c": `
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) static int load(const char *path)
{
	int code = -1, fd = open(path, O_RDONLY); // CAUSE
	if (fd < 0)
		goto out;
	code = close(fd);
out:
	return code;
}
int main(int argc, char **argv)
{
	int code = load(argv[1]);
	if (code) {
		fprintf(stderr, "load failed with %d\n", code);
		return 3;
	}
	return 0;
}
`, "suffix.c": `
#include <stdio.h>
static char name[64];
int main(int argc, char **argv)
{
	snprintf(name, sizeof name, "%s.map", argv[1]);
	FILE *f = fopen(name, "r"); // CAUSE
	if (!f) {
		perror(name);
		return 4;
	}
	fclose(f);
	return 0;
}
`, "part.c": `
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <stdlib.h>
__attribute__((noinline)) static void look(const char *list, size_t length)
{
	char *name = malloc(length + 1);
	struct stat s;
	memcpy(name, list, length);
	name[length] = 0;
	if (stat(name, &s) != 0) { // CAUSE
		perror(name);
		exit(5);
	}
	free(name);
}
int main(int argc, char **argv)
{
	look(argv[1], strcspn(argv[1], ","));
	return 0;
}
`, "kept.c": `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
static char *kept;
int main(int argc, char **argv)
{
	struct stat s;
	kept = strdup(argv[1]);
	if (stat(kept, &s) != 0) { // CAUSE
		perror(kept);
		return 6;
	}
	return 0;
}
`, "count.cc": `
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
struct Item { std::string name; int size; };
static int errors;
__attribute__((noinline)) static void verify(const std::vector<Item> &items)
{
	for (auto &i : items)
		if (i.size <= 0) {
			std::fprintf(stderr, "bad size of %s\n", i.name.c_str());
			errors++; // CAUSE
		}
}
int main(int argc, char **argv)
{
	std::vector<Item> items;
	for (int i = 0; i < 6; i++)
		items.push_back({"item" + std::to_string(i), i == 4 ? std::atoi(argv[1]) : i + 1});
	verify(items);
	return errors ? 1 : 0;
}
`, "seat.rs": `
use std::collections::HashMap;
struct Plan { seats: HashMap<u32, u32> }
impl Plan {
    #[inline(never)]
    fn price(&self, seat: u32) -> u32 {
        *self.seats.get(&seat).expect("every seat has a price") // CAUSE
    }
}
fn main() {
    let plan = Plan { seats: (1..9u32).map(|n| (n, n * 10)).collect() };
    println!("{}", plan.price(std::env::args().nth(1).unwrap().parse().unwrap()));
}
`}
	for _, x := range []struct {
		source, compiler, level, argument string
		status                            int
		says                              string
		open                              evidence.OpenEnd // empty: it is a cause
	}{
		{"die.c", "gcc", "-O0", "3", 2, "where c->workers was 12 and c->limit was 8", evidence.OpenDecision},
		{"die.c", "clang", "-O2", "5", 2, "was 20 and", evidence.OpenDecision},
		{"code.c", "gcc", "-O2", "/nonexistent/a", 3, `open("/nonexistent/a", 0) (code.c:7) returned -1: ENOENT`, ""},
		{"code.c", "clang", "-O0", "/nonexistent/b", 3, "load (code.c:7) returned -1; the last condition after it was at code.c:8, where fd was -1", evidence.OpenDecision},
		{"suffix.c", "gcc", "-O0", "/nonexistent/c", 4, `fopen("/nonexistent/c.map", "r") (suffix.c:7) returned NULL: ENOENT`, evidence.OpenOrigin},
		{"suffix.c", "clang", "-O2", "/nonexistent/d", 4, `fopen("/nonexistent/d.map", "r") (suffix.c:7) returned NULL: ENOENT`, evidence.OpenOrigin},
		{"part.c", "gcc", "-O2", "/nonexistent/e,f", 5, "returned -1: ENOENT", evidence.OpenOrigin},
		{"kept.c", "gcc", "-O0", "/nonexistent/g", 6, "returned -1: ENOENT", ""},
		{"kept.c", "clang", "-O2", "/nonexistent/h", 6, "returned -1: ENOENT", ""},
		{"count.cc", "g++", "-O0", "0", 1, "gave errors the value 1, which decided the exit", evidence.OpenOrigin},
		{"count.cc", "g++", "-O2", "-4", 1, "gave errors the value 1, which decided the exit", evidence.OpenOrigin},
		{"seat.rs", "rustc", "", "12", 101, "the value that was unwrapped is bad because", ""},
	} {
		t.Run(x.source+x.level, func(t *testing.T) {
			compiler, err := exec.LookPath(x.compiler)
			if err != nil {
				t.Skip(err)
			}
			dir := t.TempDir()
			source, exe := filepath.Join(dir, x.source), filepath.Join(dir, "program")
			if err := os.WriteFile(source, []byte(programs[x.source]), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"-g", "-o", exe, source}
			if x.level != "" {
				args = append(args, x.level)
			}
			if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			recorded := recordtest.RecordProgram(t, exe, []string{x.argument}, "", fmt.Sprintf("exit %d", x.status))
			result, err := driver.Crash(t.Context(), driver.Request{Recordings: []string{recorded.Dir}, Replays: 1})
			if err != nil {
				t.Fatal(err)
			}
			if err := result.Check(); err != nil {
				t.Error(err)
			}
			list := result.Diagnosis.Causes
			if x.open != "" {
				if len(list) > 0 {
					t.Errorf("%q is called a cause", list[0].Summary)
				}
				list = result.Diagnosis.Leads
			}
			if len(list) == 0 {
				t.Fatalf("nothing is told: %+v, %v", result.Diagnosis.Unknown, result.Limits)
			}
			c := &list[0]
			before, _, _ := strings.Cut(programs[x.source], "// CAUSE")
			if line := strings.Count(before, "\n") + 1; c.Site == nil || c.Site.Line != line || c.Proof != evidence.Replayed || c.Open != x.open || !strings.Contains(c.Summary, x.says) {
				t.Errorf("%q at %+v (%s, %s), want %q at line %d (%s)", c.Summary, c.Site, c.Proof, c.Open, x.says, line, x.open)
			}
		})
	}
}
