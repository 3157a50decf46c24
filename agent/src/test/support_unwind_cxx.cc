// Stacks of C++: members, virtual calls, lambdas, catch blocks, destructors
// that run while an exception passes, constructors before main.
#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "support_unwind.h"

namespace {

volatile int sink;

NOINLINE void leaf(const char *name, unsigned least)
{
	check(name, least);
	STAY();
}

struct Early {
	Early() { leaf("constructor before main", 4); }
} early;

struct Shape {
	virtual ~Shape() = default;
	virtual int draw(int n) = 0;
};

struct Circle : Shape {
	NOINLINE int draw(int n) override
	{
		std::string local(static_cast<size_t>(n), 'x');

		leaf("virtual member", 5);
		return static_cast<int>(local.size());
	}
};

struct Guard {
	~Guard() { leaf("destructor during an exception", 6); }
};

NOINLINE void thrower(int n)
{
	Guard guard;

	if (n)
		throw std::runtime_error("deliberate");
}

NOINLINE void catcher()
{
	try {
		thrower(1);
	} catch (const std::exception &e) {
		leaf("catch block", 4);
		sink = e.what()[0];
	}
	leaf("after a catch", 4);
}

template <typename T> NOINLINE T generic(const std::function<T(T)> &f, T value)
{
	T result = f(value);

	STAY();
	return result;
}

} // namespace

int main(int argc, char **)
{
	Circle circle;
	Shape *shape = &circle;
	std::vector<int> numbers{ 5, 4, 3 };

	sink = shape->draw(40);
	catcher();
	sink = generic<int>([argc](int n) { leaf("lambda", 6); return n + argc; }, 3);
	std::for_each(numbers.begin(), numbers.end(), [](int n) { leaf("for_each", 4); sink = n; });
	std::printf("ok %u\n", checks);
	return 0;
}
