// The library's own check of an index.
// FLAGS: -D_GLIBCXX_ASSERTIONS
#include <vector>

static volatile unsigned wanted = 9;

__attribute__((noinline, noipa)) static int element(std::vector<int> &v, unsigned n)
{
    // WANT: assertion-failure:@LINE+1
    return v[n];
}

int main()
{
    std::vector<int> v(3);
#ifdef FIXED
    wanted = 2;
#endif
    return element(v, wanted);
}
