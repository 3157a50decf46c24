// An object of a base class is used as one of a derived class, whose table is longer.
//
// FLAGS: -O1
// ENDS: SIGSEGV
// WAY: made in open
#include <cstdio>
struct shape { virtual ~shape() {} virtual int sides() { return 0; } };
struct square : shape { int sides() override { return 4; } virtual int area() { return 9; } virtual int edge() { return 3; } };
__attribute__((noinline)) static shape *open(int kind) { return kind > 5 ? new square : new shape; }
__attribute__((noinline)) static int show(shape *s) { return static_cast<square *>(s)->edge(); }
int main(int argc, char **) { std::printf("%d\n", show(open(argc))); }
