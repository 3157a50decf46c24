// The same in C++: a method that is inlined, a member of an object, and a copy of elements.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define APART __attribute__((noinline, noclone))

static std::string text;
static volatile int sink;

class Label {
public:
	explicit Label(const char *from) { std::strcpy(chars, from); }
	APART int sum() const { return chars[0] + chars[1]; }

private:
	char chars[24];
};

APART static int by_method(bool fit)
{
	Label label(fit ? "x" : text.c_str());
	sink = sink + label.sum();
	return sink;
}

namespace net {
struct Packet {
	int kind;
	std::array<char, 32> body;
};
}

APART static int by_copy(bool fit)
{
	net::Packet p;
	p.kind = 1;
	std::copy(text.begin(), fit ? text.begin() + 20 : text.end(), p.body.begin());
	sink = sink + p.body[static_cast<unsigned>(sink) % 32] + p.kind;
	return sink;
}

int main(int argc, char **argv)
{
	bool fit = !std::strcmp(argv[2], "fit");
	int length = fit ? 60 : std::atoi(argv[2]);
	for (int i = 0; i < length; i++)
		text += static_cast<char>('a' + i % 23);
	char above[512];
	std::memset(above, 1, sizeof above);
	sink = above[argc];
	int r = !std::strcmp(argv[1], "by_method") ? by_method(fit) : by_copy(fit);
	std::printf("%d\n", r != 0);
	return 0;
}
