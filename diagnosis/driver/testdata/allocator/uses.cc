// Wrong uses of objects of C++ on the heap, by name, and the same without them ("fixed").
#include <csignal>
#include <string>
#include <vector>

static bool fixed;
volatile long sink;

#define KEEP() __asm__ volatile("" ::: "memory")

struct Shape {
	virtual ~Shape() = default;
	virtual long area() const = 0;
	const long *scale = nullptr;
};

static const long one = 1;

struct Square : Shape {
	Square() { scale = &one; }
	~Square() override
	{
		scale = reinterpret_cast<const long *>(0x5a5a5a5a5a5a5a58);
		KEEP();
	}
	long area() const override { return side * side * *scale; }
	long side = 3;
	long rest[9] = {};
};

std::vector<Square *> shapes;

__attribute__((noinline)) static long measure(const Square *s) { return s->Square::area(); }

// An object whose destructor has run, in the thread's cache.
static void deleted()
{
	for (int i = 0; i < 20; i++)
		shapes.push_back(new Square);
	Square *s = shapes[7];
	if (!fixed)
		delete s;
	sink = measure(s);
}

int main(int argc, char **argv)
{
	fixed = argc > 2;
	std::string name = argc > 1 ? argv[1] : "";
	if (name == "deleted")
		deleted();
	std::raise(SIGSEGV);
}
