// A line of a template and of an inlined method, and calls that are left by an exception.
#include <cstdlib>
#include <string>
#include <vector>

volatile long sink;

namespace shop {
struct article {
    std::string name;
    long price;
    static int made;
    explicit article(long p) : name("article " + std::to_string(p)), price(p) { made++; }
    __attribute__((noinline)) long total(const long &count) const
    {
        sink = count;
        return price * count;
    }
};
int article::made = 0;

template <typename T> __attribute__((noinline)) T twice(T value)
{
    sink = (long)value;
    T result = value + value;
    sink = (long)result; /* TWICE */
    return result;
}

__attribute__((noinline)) long check(long n)
{
    sink = n;
    if (n > 2)
        throw n;
    return n + 50;
}
} // namespace shop

int main()
{
    std::vector<shop::article> list;
    long sum = 0;
    for (long n = 0; n < 6; n++) {
        list.emplace_back(n * 100);
        sum += list.back().total(n + 1);
        sum += shop::twice(n);
        if (n % 2)
            sum += (long)shop::twice(n + 0.5);
        try {
            sum += shop::check(n);
        } catch (long thrown) {
            sum -= thrown;
        }
    }
    sink = sum;
    std::abort();
}
