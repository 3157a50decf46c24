package verdict_test

import (
	"testing"

	"diagnose/evidence"
)

// changedPrograms give up because a number lost bits or changed its sign on its way to a check, at MARK.
var changedPrograms = map[string]string{
	// A member that counts in 8 bits.
	"shelves.c": `
#include <stdlib.h>

struct shelf { unsigned char used; char name[15]; int items[400]; };
static struct shelf *shelves[4];

static void put(struct shelf *s, int item)
{
	s->items[s->used] = item;
	s->used++; // MARK
}

static int audit(void)
{
	int all = 0;

	for (int i = 0; i < 4; i++)
		all += shelves[i]->used;
	return all;
}

int main(void)
{
	int stored = 0;

	for (int i = 0; i < 4; i++)
		shelves[i] = calloc(1, sizeof(*shelves[i]));
	for (int k = 0; k < 700; k++) {
		put(shelves[k % 7 < 3 ? 0 : k % 4], k);
		stored++;
	}
	if (audit() != stored)
		abort();
	return 0;
}
`,
	// A length that is kept in 16 bits, and written byte by byte.
	"records.cpp": `
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

struct Writer {
	std::vector<uint8_t> out;

	void record(const std::string &s)
	{
		uint16_t n = s.size(); // MARK
		out.push_back(n & 0xff);
		out.push_back(n >> 8);
		out.insert(out.end(), s.begin(), s.end());
	}
};

int main()
{
	Writer w;
	std::vector<size_t> sizes = { 10, 3000, 12, 66000, 40 };
	size_t at = 0;

	for (size_t n : sizes)
		w.record(std::string(n, 'x'));
	for (size_t n : sizes) {
		size_t has = w.out[at] | w.out[at + 1] << 8;

		at += 2 + has;
		if (has != n)
			abort();
	}
	return 0;
}
`,
	// Levels that are read with a sign.
	"levels.c": `
#include <stdlib.h>

static signed char levels[64];
static int count;

__attribute__((noinline)) static void keep(int level) { levels[count++] = level; }

__attribute__((noinline)) static int loudest(void)
{
	int most = 0;

	for (int i = 0; i < count; i++) {
		int level = levels[i]; // MARK
		most += level;
	}
	return most;
}

int main(void)
{
	int most = 0;

	for (int i = 0; i < 50; i++) {
		int level = i * 37 % 101 + (i == 20 ? 97 : 0);

		keep(level);
		most += level;
	}
	if (loudest() != most)
		abort();
	return 0;
}
`,
	// Offsets that do not go into 32 bits.
	"parts.c": `
#include <stdint.h>
#include <stdlib.h>

struct part { uint32_t offset, size; };

int main(void)
{
	struct part *parts = calloc(64, sizeof(*parts));
	uint64_t end = 0;

	for (int i = 0; i < 48; i++) {
		uint64_t size = (uint64_t)(i + 1) * 4000000;

		parts[i].offset = end; // MARK
		parts[i].size = size;
		end += size;
	}
	for (int i = 1; i < 48; i++)
		if (parts[i].offset < parts[i - 1].offset)
			abort();
	return end > 10 ? 0 : 1;
}
`,
}

// meantPrograms give up for another reason, and lose bits on purpose.
var meantPrograms = map[string]string{
	// A hash loses bits each time.
	"hash.c": `
#include <stdlib.h>

static char text[200];

__attribute__((noinline)) static unsigned char hash(const char *s)
{
	unsigned char h = 7;

	while (*s)
		h = h * 31 + *s++;
	return h;
}

int main(void)
{
	unsigned char before;

	for (int i = 0; i < 199; i++)
		text[i] = 'a' + i % 26;
	before = hash(text);
	text[100] = 'A';
	if (hash(text) != before)
		abort();
	return 0;
}
`,
	// A number is written byte by byte.
	"bytes.c": `
#include <stdlib.h>

static unsigned char out[64];

__attribute__((noinline)) static void put(int at, unsigned n)
{
	out[at] = n;
	out[at + 1] = n >> 8;
	out[at + 2] = n >> 16;
	out[at + 3] = n >> 24;
}

__attribute__((noinline)) static unsigned get(int at)
{
	return out[at] | out[at + 1] << 8 | out[at + 2] << 16 | (unsigned)out[at + 3] << 24;
}

int main(void)
{
	put(0, 70000);
	put(4, 5);
	put(2, 0);
	if (get(0) != 70000)
		abort();
	return 0;
}
`,
}

// TestChangedNumber: where a program gives up because a number lost a part on its way, that place is the first lead.
func TestChangedNumber(t *testing.T) {
	text := func(source string) string { return changedPrograms[source] }
	check := func(t *testing.T, source string, d *evidence.Diagnosis) {
		marked := lineOf(text(source), "// MARK")
		switch {
		case len(d.Causes) > 0:
			t.Errorf("a cause is named: %s", d.Causes[0].Summary)
		case len(d.Leads) == 0 || d.Leads[0].Open != evidence.OpenChanged || d.Leads[0].Site.Line != marked:
			t.Errorf("the first lead is not the number that changed at line %d: %+v", marked, d.Leads)
		}
	}
	eachBuild(t, []build{{"shelves.c", "gcc", "-O0"}, {"shelves.c", "gcc", "-O2"}, {"shelves.c", "clang", "-O1"},
		{"records.cpp", "g++", "-O0"}, {"records.cpp", "clang++", "-O0"},
		{"levels.c", "gcc", "-O0"}, {"levels.c", "clang", "-O1"},
		{"parts.c", "gcc", "-O2"}, {"parts.c", "clang", "-O0"}}, text, "SIGABRT", check)
}

// TestMeantNumber: code that loses bits on purpose is no lead.
func TestMeantNumber(t *testing.T) {
	text := func(source string) string { return meantPrograms[source] }
	check := func(t *testing.T, _ string, d *evidence.Diagnosis) {
		for _, lead := range d.Leads {
			if lead.Open == evidence.OpenChanged {
				t.Errorf("a lead: %s", lead.Summary)
			}
		}
	}
	eachBuild(t, []build{{"hash.c", "gcc", "-O0"}, {"hash.c", "clang", "-O1"}, {"bytes.c", "gcc", "-O2"}, {"bytes.c", "clang", "-O0"}}, text, "SIGABRT", check)
}
