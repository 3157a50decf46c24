/* One misuse of the heap for each name. Each ends in an abort of malloc's; with a second argument the
 * same code does without the misuse, and a signal ends the program. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fixed;
static char *kept;
struct box { int id; char *text; };
static struct box box;

/* Keeps the compiler from following memory. */
__attribute__((noinline)) static void use(void *p) { __asm__ volatile("" : : "r"(p) : "memory"); }

static void *get(size_t n)
{
	void *p = malloc(n);
	use(p);
	return p;
}

static void release(void *p)
{
	use(p);
	free(p);
}

static void fill(char *p, int c, size_t n) { memset(p, c, n); use(p); }

/* More chunks than a thread's list takes. */
static void fill_lists(size_t n)
{
	void *p[20];
	for (int i = 0; i < 20; i++) p[i] = get(n);
	for (int i = 0; i < 20; i++) release(p[i]);
}

static void over_text(void)
{
	char *name = get(40), *next = get(1200), *guard = get(40);
	kept = name;
	fill(name, 'A', fixed ? 40 : 56);
	release(next);
	use(guard);
	use(get(3000));
}

static void over_numbers(void)
{
	int *v = get(10 * sizeof *v), *next = get(200);
	box.text = (char *)v;
	for (int i = 0; i < (fixed ? 10 : 15); i++) v[i] = i + 100;
	use(v);
	release(next);
}

static void over_unsorted(void)
{
	char *name = get(72), *next = get(1100), *guard = get(16);
	kept = name;
	release(next);
	fill(name, 'q', fixed ? 72 : 88);
	use(guard);
	use(get(2000));
}

static void over_top(void)
{
	char *name = get(24);
	kept = name;
	fill(name, 'T', fixed ? 24 : 40);
	use(get(100000));
}

static void off_by_null(void)
{
	char *name = get(40), *next = get(0x4f8), *guard = get(24);
	kept = name;
	fill(name, 'n', 40);
	if (!fixed) name[40] = 0;
	use(name);
	release(next);
	use(guard);
}

static void over_pointers(void)
{
	void **list = get(5 * sizeof *list), *next = get(1300), *guard = get(24);
	kept = (char *)list;
	for (int i = 0; i < (fixed ? 5 : 6); i++) list[i] = &box;
	use(list);
	release(next);
	use(guard);
}

static void under(void)
{
	char *first = get(40), *second = get(1200), *guard = get(24);
	memset(first, 0, 40);
	use(first);
	if (!fixed) ((long *)second)[-1] = -1;
	use(second);
	release(second);
	use(guard);
}

static void double_tcache(void)
{
	kept = get(56);
	release(kept);
	if (!fixed) release(kept);
}

static void double_fast(void)
{
	char *p = get(56);
	fill_lists(56);
	release(p);
	if (!fixed) release(p);
}

static void double_large(void)
{
	char *p = get(2000), *guard = get(24);
	kept = p;
	release(p);
	if (!fixed) release(p);
	use(guard);
}

static void double_merged(void)
{
	char *first = get(2000), *second = get(1500), *guard = get(24);
	release(first);
	release(second);
	if (!fixed) release(second);
	use(guard);
}

static void double_top(void)
{
	char *p = get(2000);
	release(p);
	if (!fixed) release(p);
}

static void free_inside(void)
{
	char *p = get(100);
	kept = p;
	release(fixed ? p : p + 8);
}

static void free_aligned_inside(void)
{
	char *p = get(100);
	memset(p, 0, 100);
	kept = p;
	release(fixed ? p : p + 32);
}

static void free_stack(void)
{
	char local[64] = "on the stack";
	char *p = get(24);
	release(fixed ? p : local + 8);
}

static void free_global(void)
{
	char *p = get(24);
	release(fixed ? p : (char *)&box);
}

static void realloc_inside(void)
{
	char *p = get(100);
	kept = p;
	use(realloc(fixed ? p : p + 24, 500));
}

static void stale_tcache(void)
{
	char *a = get(120), *b = get(120);
	release(b);
	release(a);
	kept = a;
	if (!fixed) memcpy(a, "stale write", 12);
	use(a);
	use(get(120));
	use(get(120));
}

static void stale_tcache_seen(void)
{
	char *a = get(120), *b = get(120), *next = get(1500), *guard = get(24);
	release(b);
	release(a);
	kept = a;
	if (!fixed) memcpy(a, "stale write", 12);
	use(a);
	release(fixed ? next : next + 8);
	use(guard);
}

static void stale_unsorted(void)
{
	char *p = get(2200), *guard = get(24);
	release(p);
	kept = p;
	if (!fixed) memcpy(p, "unsorted", 8);
	use(p);
	use(get(3000));
	use(guard);
}

static void stale_back(void)
{
	char *p = get(2200), *guard = get(24);
	release(p);
	kept = p;
	if (!fixed) memcpy(p + 8, &box, 0), *(void **)(p + 8) = &box;
	use(p);
	use(get(3000));
	use(guard);
}

static void stale_small(void)
{
	char *p = get(1600), *guard = get(24);
	use(guard);
	release(p);
	use(get(3000)); /* the free one goes to the list of its size */
	kept = p;
	if (!fixed) *(long *)(p + 8) = 0x1234567;
	use(p);
	use(get(1600));
}

static const struct { const char *name; void (*run)(void); } all[] = {
	{"over_text", over_text}, {"over_numbers", over_numbers}, {"over_unsorted", over_unsorted}, {"over_top", over_top},
	{"off_by_null", off_by_null}, {"over_pointers", over_pointers}, {"under", under},
	{"double_tcache", double_tcache}, {"double_fast", double_fast}, {"double_large", double_large},
	{"double_merged", double_merged}, {"double_top", double_top}, {"free_inside", free_inside},
	{"free_aligned_inside", free_aligned_inside}, {"free_stack", free_stack}, {"free_global", free_global},
	{"realloc_inside", realloc_inside}, {"stale_tcache", stale_tcache}, {"stale_tcache_seen", stale_tcache_seen},
	{"stale_unsorted", stale_unsorted}, {"stale_back", stale_back}, {"stale_small", stale_small},
};

int main(int argc, char **argv)
{
	fixed = argc > 2;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (argc > 1 && !strcmp(argv[1], all[i].name)) all[i].run();
	if (fixed) raise(SIGSEGV);
	puts("nothing was noticed");
	return 0;
}
