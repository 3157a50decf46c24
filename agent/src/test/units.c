/* The allocator's arithmetic, each function over all of its inputs or all of
 * its edges. The agent is part of this program, which therefore runs on it.
 * Prints how many checks were made. */
#include "agent.c"

#include <stdio.h>
#include <sys/resource.h>

static unsigned long checks;

#define CHECK(condition, ...)                                                         \
	do {                                                                          \
		checks++;                                                             \
		if (!(condition)) {                                                   \
			fprintf(stderr, "%s:%d: " #condition ": ", __FILE__, __LINE__); \
			fprintf(stderr, __VA_ARGS__);                                 \
			fputc('\n', stderr);                                          \
			_Exit(3);                                                     \
		}                                                                     \
	} while (0)

static void test_classes(void)
{
	uint32_t need, c;

	CHECK(dg_class_slot(0) == 16 && dg_class_slot(DG_CLASSES - 1) == DG_SMALL_MAX, "ends");
	for (c = 1; c < DG_CLASSES; c++)
		CHECK(dg_class_slot(c) > dg_class_slot(c - 1) && dg_class_slot(c) % 16 == 0, "%u", c);
	for (need = 1; need <= DG_SMALL_MAX; need++) {
		c = dg_class(need);
		CHECK(c < DG_CLASSES && dg_class_slot(c) >= need, "%u: class %u", need, c);
		CHECK(c == 0 || dg_class_slot(c - 1) < need, "%u: class %u is not the smallest", need, c);
	}
}

/* Division by multiplication, at the edges of every slot of every span. */
static void test_magic(void)
{
	uint32_t c, slot, units;
	uint64_t i, magic, end;

	for (c = 0; c < DG_CLASSES; c++) {
		slot = dg_class_slot(c);
		units = dg_class_units(slot);
		magic = dg_class_magic(slot);
		end = (uint64_t)units * DG_UNIT;
		CHECK((end - dg_class_align(slot)) / slot >= 7, "class %u: few slots", c);
		for (i = 0; (i + 1) * slot <= end; i++) {
			CHECK(i * slot * magic >> 44 == i, "class %u slot %lu", c, i);
			CHECK(((i + 1) * slot - 1) * magic >> 44 == i, "class %u slot %lu", c, i);
		}
	}
}

static void test_alignment(void)
{
	uint32_t align, c;

	for (align = 16; align <= 4096; align *= 2) {
		c = dg_aligned_class(1, align);
		CHECK(c < DG_CLASSES && dg_class_slot(c) % align == 0, "%u: class %u", align, c);
		CHECK(dg_class_align(dg_class_slot(c)) >= align, "%u: class %u", align, c);
	}
}

static uint8_t room[4096 + 64] __attribute__((aligned(64)));

/* Every byte of a canary is written and compared, and no other one. */
static void test_canary(uint64_t slot, uint64_t size)
{
	uint64_t at = (uint64_t)room + 16, end = dg_up8(size) + DG_MAX_CANARY, i, k = DG_CANARY_WORD(DG_DEFAULT_CANARY, size);

	if (end > slot)
		end = slot;
	CHECK(dg_canary_end(at, size, slot) == at + end, "slot %lu size %lu", slot, size);
	memset(room, 0, sizeof(room));
	dg_canary_put(at, size, slot, k);
	for (i = 0; i < size + 16; i++)
		CHECK(room[i] == 0, "slot %lu size %lu: byte %lu before the canary", slot, size, i);
	for (i = size; i < end; i++)
		CHECK(room[16 + i] == (uint8_t)(k >> ((at + i) % 8 * 8)),
		      "slot %lu size %lu: byte %lu", slot, size, i);
	CHECK(room[16 + end] == 0, "slot %lu size %lu: byte behind", slot, size);
	CHECK(dg_canary_stands(at, size, slot, k), "slot %lu size %lu", slot, size);
	for (i = 0; i <= slot; i++) {
		room[16 + i] ^= 0x40;
		CHECK(dg_canary_stands(at, size, slot, k) == (i < size || i >= end),
		      "slot %lu size %lu: byte %lu changed", slot, size, i);
		room[16 + i] ^= 0x40;
	}
}

/* What layout.h says of the factor: no byte of a guard is that of one of the
 * 108 slots on either side, and all guards differ. */
static void test_guards_differ(void)
{
	uint64_t number, near, v, inverse = DG_CANARY_FACTOR;
	int64_t far;
	unsigned i, digits;

	for (number = 0x402000000ull; number < 0x402000000ull + (1 << 20); number += 127)
		for (near = number + 1; near < number + 109; near++)
			for (i = 0; i < 64; i += 8)
				CHECK((DG_CANARY_WORD(dg_hot.canary, number) ^ DG_CANARY_WORD(dg_hot.canary, near)) >> i & 0xff,
				      "%lx and %lx: byte %u", number, near, i / 8);
	for (i = 0; i < 6; i++)
		inverse *= 2 - DG_CANARY_FACTOR * inverse;
	CHECK(inverse * DG_CANARY_FACTOR == 1, "%lx", inverse);
	/* Guards are equal if their products differ in high bits of bytes only: by
	 * a sum of -0x80, 0 or 0x80 for each byte. */
	for (digits = 1; digits < 6561; digits++) {
		unsigned rest = digits;

		for (i = 0, v = 0; i < 64; i += 8, rest /= 3)
			v += (rest % 3 * 0x80ull - 0x80) << i;
		far = (int64_t)(v * inverse);
		CHECK(!far || far >= 1ll << 47 || far <= -(1ll << 47), "numbers %ld apart", far);
	}
}

static void test_canaries(void)
{
	uint64_t size, slot;
	uint32_t c;

	for (size = 0; size <= 1500; size++) {
		c = dg_class(size + DG_MIN_CANARY);
		test_canary(dg_class_slot(c), size);
		if (size % 5 == 0) /* as aligned ones and those shrunk in place have it */
			test_canary(dg_class_slot(c + 3), size);
	}
	for (slot = 16; slot <= 512; slot += 16)
		for (size = 0; size + DG_MIN_CANARY <= slot; size += 1 + slot / 64)
			test_canary(slot, size);
}

static void test_fill(uint64_t n)
{
	uint64_t at = (uint64_t)room + 16, word = DG_FILL_WORD(dg_hot.objects, at), i;

	memset(room, 0, sizeof(room));
	dg_fill(at, n);
	for (i = 0; i < n; i++)
		CHECK(room[16 + i] == (uint8_t)(word >> (i % 8 * 8)), "fill %lu byte %lu", n, i);
	CHECK(room[15] == 0 && room[16 + n] == 0, "fill %lu writes around", n);
	CHECK(dg_fill_stands(at, n), "fill %lu", n);
	for (i = 0; i <= n; i++) {
		room[16 + i] ^= 1;
		CHECK(dg_fill_stands(at, n) == (i == n), "fill %lu byte %lu changed", n, i);
		room[16 + i] ^= 1;
	}
}

/* Runs taken and given back join again into one. */
static void test_runs(void)
{
	struct dg_span *s[8], *all;
	uint32_t i, units = 37;

	CHECK(dg_lock(), "lock");
	all = dg_run_take(8 * units);
	CHECK(all, "no run");
	dg_run_put(dg_span_index(all), 8 * units);
	for (i = 0; i < 8; i++) {
		s[i] = dg_run_take(units);
		CHECK(s[i] && (i == 0 || s[i] >= s[i - 1] + units), "run %u overlaps", i);
	}
	for (i = 0; i < 8; i++)
		dg_run_put(dg_span_index(s[i * 3 % 8]), units);
	all = dg_run_take(8 * units);
	CHECK(all == s[0], "the runs did not join");
	dg_run_put(dg_span_index(all), 8 * units);
	dg_unlock();
}

static void test_waiting(void)
{
	uint64_t row[DG_BATCH], first;
	struct dg_span *s;
	uint32_t c = dg_class(300), i, n;

	CHECK(dg_lock(), "lock");
	s = dg_span_new(0, c);
	first = dg_span_start(s) + s->first;
	for (i = 0; i < 20; i++)
		dg_waiting_put(s, (i * 7 + 3) % 20);
	CHECK(s->central == 20, "%u wait", s->central);
	n = dg_waiting_take(c, row, DG_BATCH);
	CHECK(n >= 20 && s->central == 0, "%u taken, %u left", n, s->central);
	for (i = 0; i < 20; i++)
		CHECK(row[n - 1 - i] == first + (uint64_t)i * s->slot, "place %u", i);
	s = dg_span_new(0, DG_CLASSES - 1);
	for (i = 0; i < s->slots; i++)
		dg_waiting_put(s, i);
	n = dg_waiting_take(DG_CLASSES - 1, row, DG_BATCH);
	CHECK(n == 1, "%u of 128 KiB taken", n);
	dg_unlock();
}

/* What the counters say of large objects, against the spans themselves. */
static void check_kept(void)
{
	uint64_t i, units = dg_root->objects.used >> DG_UNIT_SHIFT, live = 0, kept = 0, small = 0;
	uint64_t before = dg_root->large_quarantined, sum;
	struct dg_span *s;

	for (i = 0; i < units; i++) {
		s = dg_span(i);
		if (s->kind == DG_SPAN_LARGE)
			live += *dg_resident(s);
		else if (s->kind == DG_SPAN_SMALL)
			small += s->units;
		else if (s->kind == DG_SPAN_FREED && dg_state(s->reserved[0]) == DG_REUSABLE &&
			 dg_kept_kind(s) == DG_WHOLE)
			kept += *dg_resident(s);
	}
	CHECK(live == dg_kept.live, "%lu live, %lu counted", live, dg_kept.live);
	CHECK(kept == dg_kept.bytes, "%lu kept, %lu counted", kept, dg_kept.bytes);
	CHECK(small == dg_super.used, "%lu small, %lu counted", small, dg_super.used);
	sum = dg_in_use() + kept + before;
	CHECK(sum <= dg_most(dg_kept.peak, dg_in_use()) + dg_root->large_budget,
	      "%lu in use and kept of %lu", sum, dg_kept.peak);
}

static void test_kept(void)
{
	uint64_t random = 1, size, i, k;
	char *p[24] = { NULL };

	for (i = 0; i < 4000; i++) {
		random = random * 6364136223846793005ull + 1442695040888963407ull;
		k = (random >> 33) % 24;
		size = 1ull << (17 + (random >> 40) % 5);
		size += (random >> 45) % size;
		if (random >> 63) {
			p[k] = realloc(p[k], size);
		} else {
			free(p[k]);
			p[k] = malloc(size);
		}
		CHECK(p[k], "no memory");
		p[k][0] = p[k][size - 1] = 1;
		check_kept();
	}
	for (k = 0; k < 24; k++)
		free(p[k]);
	check_kept();
}

static long faults(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return r.ru_minflt;
}

/* A large buffer that comes and goes does not fault in its memory each time. */
static void test_coming_and_going(void)
{
	uint64_t size = 8u << 20, i;
	long before = faults(), met;

	for (i = 0; i < 100; i++) {
		char *p = malloc(size);

		CHECK(p, "no memory");
		memset(p, 1, size);
		__asm__ volatile("" : : "r"(p) : "memory"); /* or the stores are dropped */
		free(p);
	}
	met = faults() - before;
	CHECK(met < 4 * (long)(size / DG_PAGE), "%ld faults", met);
}

/* In order a thread waits; out of order, and for a lock that is never released, it
 * is refused. */
static void test_locks(void)
{
	CHECK(dg_hold(DG_LEVEL_SITES), "free");
	CHECK(!dg_hold(DG_LEVEL_SITES), "held by this thread");
	CHECK(dg_hold(DG_LEVEL_SUPER), "free, though out of order");
	dg_let_go(DG_LEVEL_SUPER);
	dg_root->lock = 1; /* init's, which is not here */
	CHECK(!dg_hold(DG_LEVEL_SUPER), "taken, and out of order");
	dg_let_go(DG_LEVEL_SITES);
	CHECK(!dg_try(DG_LEVEL_SUPER), "taken");
	dg_root->lock = DG_LOCK_NOBODY;
	CHECK(!dg_hold(DG_LEVEL_SUPER), "never given back");
	dg_root->lock = 0;
	CHECK(dg_held == 0, "%#x", dg_held);
}

/* A check leaves at least half of the time to the program, and is not made
 * before it is due. */
static void test_interval(void)
{
	char *volatile p = malloc(100);
	uint64_t before;

	CHECK(dg_check_after(1000, 1500, 10) == 2010, "%lu", dg_check_after(1000, 1500, 10));
	dg_root->options.on_error = DG_CONTINUE;
	dg_root->options.check_interval_ms = 1000000;
	before = dg_milliseconds(CLOCK_MONOTONIC);
	dg_check_if_due();
	CHECK(dg_check_next >= before + 1000000, "%lu", dg_check_next);
	p[100]++;
	dg_check_if_due();
	CHECK(dg_root->error_count == 0, "checked before it was due");
	dg_check_next = 0;
	dg_check_if_due();
	CHECK(dg_root->error_count == 1, "not checked");
	p[100]--;
	free(p);
	dg_root->options.check_interval_ms = 0;
}

int main(void)
{
	uint64_t n;

	free(malloc(1)); /* the agent starts */
	CHECK(dg_hot.canary && dg_hot.canary == dg_root->options.canary, "options are set");
	test_classes();
	test_magic();
	test_alignment();
	test_canaries();
	test_guards_differ();
	for (n = 16; n <= 512; n += 16)
		test_fill(n);
	test_runs();
	test_waiting();
	test_locks();
	test_interval();
	test_kept();
	test_coming_and_going();
	printf("units: %lu checks\n", checks);
	return 0;
}
