// As pool_twice.cc, with elements that are unions: of a pointer to the next free one, and of bytes for any object.
// ENDS: SIGSEGV
// FLAGS: -O0
// WAY: reused in Named::Named
#include <cstddef>
#include <cstdio>
#include <new>

class Pool {
	union Item {
		Item *next;
		char bytes[64];
	};
	Item items[16];
	Item *root = nullptr;

public:
	Pool()
	{
		for (Item &i : items)
			Free(&i);
	}
	void *Alloc()
	{
		Item *result = root;
		root = root->next;
		return result;
	}
	void Free(void *memory)
	{
		Item *item = static_cast<Item *>(memory);
		item->next = root;
		root = item;
	}
};

struct Named {
	const char *name;
	unsigned length;
	Named(const char *n) : name(n), length(1) {}
};

static Pool pool;

static void drop(Named *n)
{
	pool.Free(n);
	pool.Free(n); // BUG
}

int main()
{
	drop(new (pool.Alloc()) Named("first"));
	Named *a = new (pool.Alloc()) Named("second");
	Named *b = new (pool.Alloc()) Named("third");
	Named *c = new (pool.Alloc()) Named("fourth");
	std::printf("%p %p %p\n", static_cast<void *>(a), static_cast<void *>(b), static_cast<void *>(c));
	return 0;
}
