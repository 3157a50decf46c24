// A struct is copied byte by byte, and by vector moves; its null is the program's.
//
// FLAGS: -O2
// ENDS: SIGSEGV
// WAY: constant in make
#include <cstdio>
#include <cstring>
struct node { node *next, *before; long key; };
__attribute__((noinline)) static void make(node *n) { n->next = n; n->before = nullptr; n->key = 3; }
__attribute__((noinline)) static void relay(char *to, const char *from, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		static_cast<volatile char *>(to)[i] = from[i];
}
__attribute__((noinline)) static long walk(const node *n) { return n->before->key; }
int main()
{
	node a, b, c;
	make(&a);
	relay(reinterpret_cast<char *>(&b), reinterpret_cast<char *>(&a), sizeof b);
	std::memcpy(&c, &b, sizeof c);
	std::printf("%ld\n", walk(&c));
}
