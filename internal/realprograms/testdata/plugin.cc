// A plugin with everything that its unloading has to undo: static objects, a
// thread-local one, and memory that outlives it.
#include <map>
#include <memory>
#include <string>
#include <vector>

static std::map<int, std::string> table = [] {
	std::map<int, std::string> m;
	for (int i = 0; i < 200; i++)
		m[i] = std::string(i, 'p');
	return m;
}();
static thread_local std::vector<std::string> own;

struct alignas(128) wide {
	char c[256];
};

extern "C" int plugin(int n)
{
	own.assign(n, "an element that is too long for the string itself");
	auto w = std::make_unique<wide[]>(3);
	return (int)table[n % 200].size() + (int)own.size() + ((unsigned long)w.get() % 128 != 0);
}

extern "C" char *gift(int n) { return new char[n]{}; }
