// A lambda in a std::function outlives what it captured.
#include <functional>

static int *volatile target;
static int real;

template <typename T> struct Handler {
    std::function<T(T)> call;
    __attribute__((noinline, noipa)) T run(T value) { return call(value); }
};

int main()
{
#ifdef FIXED
    target = &real;
#endif
    Handler<int> handler;
    int *captured = target;
    handler.call = [captured](int n) {
        // WANT: null-pointer write:@LINE+1
        *captured = n;
        return n + 1;
    };
    return handler.run(3) != 4;
}
