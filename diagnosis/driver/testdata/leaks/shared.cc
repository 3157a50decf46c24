// LOST 2 2: two cycles of std::shared_ptr.
#include "leaks.h"
#include <memory>
#include <vector>
struct Node {
	std::shared_ptr<Node> peer;
	long data[6] = {};
};
std::vector<std::shared_ptr<Node>> good;
__attribute__((noinline)) static void cycle()
{
	auto a = std::make_shared<Node>(), b = std::make_shared<Node>();
	a->peer = b, b->peer = a;
	lose(a.get());
}
int main(int argc, char **)
{
	fixed = argc > 1;
	for (int i = 0; i < 30; i++) {
		good.push_back(std::make_shared<Node>());
		good.back()->peer = good.front();
	}
	cycle();
	cycle();
	finish();
}
