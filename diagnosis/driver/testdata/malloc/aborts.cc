// Misuse of the heap in C++; as aborts.c.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

static bool fixed;

template <class T> __attribute__((noinline)) static T *use(T *p) { __asm__ volatile("" : "+r"(p) : : "memory"); return p; }

static void vector_over()
{
	std::vector<int> v(10), next(200);
	int *data = use(v.data());
	for (int i = 0; i < (fixed ? 10 : 15); i++) data[i] = 7000 + i;
	use(data);
	next.resize(1000);
	use(next.data());
}

static void string_over()
{
	std::string s(39, 'x'), next(1200, 'y');
	char *data = use(&s[0]);
	std::memset(data, 'z', fixed ? 39 : 56);
	use(data);
	next.append(5000, 'y');
	use(&next[0]);
}

struct Node { virtual ~Node() {} long value[6] = {}; };

static void delete_twice()
{
	Node *n = use(new Node);
	delete n;
	if (!fixed) ::operator delete(use(static_cast<void *>(n)));
}

static void delete_inside()
{
	long *list = use(new long[20]());
	::operator delete(use(static_cast<void *>(fixed ? list : list + 1)));
}

static const struct { const char *name; void (*run)(); } all[] = {
	{"vector_over", vector_over}, {"string_over", string_over}, {"delete_twice", delete_twice}, {"delete_inside", delete_inside},
};

int main(int argc, char **argv)
{
	fixed = argc > 2;
	for (auto &x : all)
		if (argc > 1 && !std::strcmp(argv[1], x.name)) x.run();
	if (fixed) raise(SIGSEGV);
	std::puts("nothing was noticed");
}
