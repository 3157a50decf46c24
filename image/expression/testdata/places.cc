// The same names in several scopes.
#include <cstdlib>
#include <string>

static int count = 3;
namespace pool {
int count = 4;
enum class state { idle, busy = 7 };
enum level { low = 2, high = 9 };
struct base {
    int id = 11;
};
struct worker : base {
    static int made;
    state now = state::busy;
    const char *name = "worker";
    level at = high;
    int self(int &by, worker &other)
    {
        int local = by + 1;
        if (local) {
            int local = 100;
            static int count = 5;
            count += local;
            if (made)
                std::abort();
        }
        return local + other.id;
    }
};
int worker::made = 6;
} // namespace pool

template <typename T> struct holder {
    T value;
};
holder<int> held{12};

static int other() { static int count = 77; static int only_there = 78; return ++count + ++only_there; }

int main()
{
    pool::worker w, v;
    v.id = 22;
    int by = 30;
    return w.self(by, v) + count + other() + held.value;
}
