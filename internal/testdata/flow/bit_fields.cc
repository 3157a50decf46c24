// The same with optimisation, in a word of eight bytes.
//
// FLAGS: -O2
// ENDS: SIGSEGV
// WAY: returned in moment
#include <cstdio>
#include <ctime>
struct Entry { unsigned long open : 5, row : 40, dirty : 1, rest : 18; };
static Entry entries[4];
int table[16];
__attribute__((noinline)) static unsigned long moment() { return static_cast<unsigned long>(std::time(nullptr)); }
__attribute__((noinline)) static void set_row(Entry *e, unsigned long row) { e->row = row; }
__attribute__((noinline)) static void set_dirty(Entry *e) { e->dirty = 1; }
int main(int argc, char **)
{
	Entry *e = &entries[argc];
	e->open = 3;
	set_row(e, moment());
	set_dirty(e);
	std::printf("%d\n", table[e->row * 64]);
	return 0;
}
