/* Objects with bases, references and bit fields, and a template. */
#include <cstdlib>
#include <string>
#include <vector>
namespace geo {
struct base { int id; virtual ~base() {} };
struct shape : base {
    double area; bool open : 1; unsigned sides : 5;
    std::vector<int> points;
    const std::string &name;
    shape(int i, const std::string &n) : area(i * 1.5), open(true), sides(i), name(n) { id = i; }
    int weigh(int by) {
        int result = by * id;
        points.push_back(result);
        return result;
    }
};
}
template <class T> __attribute__((noinline)) T twice(T v) {
    T out = v + v;
    return out;
}
int main() {
    std::string n = "square";
    geo::shape s(4, n);
    int sum = s.weigh(3) + twice(5);
    double d = twice(2.5);
    if (sum + d > 1) abort();
}
