// The fourth of three elements is asked for.
#include <vector>

static volatile unsigned wanted = 3;

__attribute__((noinline, noipa)) static int element(const std::vector<int> &v, unsigned n)
{
    // WANT: cxx-terminate:@LINE+1
    return v.at(n);
}

int main()
{
    std::vector<int> v = {1, 2, 3};
#ifdef FIXED
    wanted = 2;
#endif
    return element(v, wanted) != 3;
}
