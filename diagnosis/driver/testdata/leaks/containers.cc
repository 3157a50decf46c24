// LOST 3 305: a map of strings on the heap, a vector, and an object with virtual functions that owns two others.
#include "leaks.h"
#include <map>
#include <memory>
#include <string>
#include <vector>
struct Shape {
	virtual ~Shape() {}
	virtual int area() const { return 1; }
	int id = 3;
};
struct Group : Shape {
	std::unique_ptr<Shape> left{new Shape}, right{new Shape};
	double weights[5] = {};
};
std::map<int, std::string> names;
std::vector<std::unique_ptr<Shape>> shapes;
__attribute__((noinline)) static void fill()
{
	for (int i = 0; i < 100; i++) {
		names[i] = std::string(50 + i, 'x');
		shapes.emplace_back(i % 3 ? new Shape : new Group);
	}
}
__attribute__((noinline)) static void drop()
{
	auto *m = new std::map<int, std::string>;
	for (int i = 0; i < 100; i++)
		(*m)[i] = std::string(40 + i, 'y');
	lose(m);
	auto *v = new std::vector<std::string>;
	v->reserve(102);
	for (int i = 0; i < 102; i++)
		v->push_back(std::string(60, 'z'));
	lose(v);
	lose(new Group);
}
int main(int argc, char **)
{
	fixed = argc > 1;
	fill();
	drop();
	finish();
}
