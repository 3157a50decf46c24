// A callback is given an object of a class that has nothing to do with the one that it expects.
#include <cstdio>
#include <cstring>
#include <string>
#include <map>
class Shape { public: virtual ~Shape() {} virtual double area() const = 0; };
class Square : public Shape { public: explicit Square(double s) : side(s) {} double area() const override { return side * side; } double side; };
class Listener { public: virtual ~Listener() {} virtual void notify(const char *what) = 0; virtual int flush(int n) = 0; virtual int close() = 0;};
class Printer : public Listener { public: std::string prefix; void notify(const char *what) override { printf("%s%s\n", prefix.c_str(), what); } int flush(int n) override { return n + (int)prefix.size(); } int close() override { return 0; } };
struct Hook { void *user; void (*run)(void *user); };
__attribute__((noinline)) static void on_event(void *user)
{
    Listener *listener = static_cast<Listener *>(user);
    listener->close();
}
int main(int argc, char **argv)
{
    Square *square = new Square(2);
    Printer *printer = new Printer;
    Hook hooks[2] = {{printer, on_event}, {argc > 3 ? (void *)printer : (void *)square, on_event}};
    for (Hook &h : hooks) h.run(h.user);
    return 0;
}
