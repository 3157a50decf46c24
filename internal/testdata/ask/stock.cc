// Threads take parts from a stock: a class with a member for its lock, methods that name members alone, a reference, a template.
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

namespace shop {

constexpr int takings = 5;

class Stock {
public:
    __attribute__((noinline)) int take(int amount)
    {
        std::lock_guard<std::mutex> guard(lock);
        parts -= amount; // TAKE
        return parts;
    }
    int left() const { return parts; }

private:
    std::mutex lock;
    int parts = 100;
    friend void run();
};

Stock *stock;

template <typename T> __attribute__((noinline)) T twice(const T &value)
{
    return value + value; // TWICE
}

void run()
{
    stock = new Stock;
    std::vector<std::thread> threads;
    for (int n = 1; n <= 2; n++)
        threads.emplace_back([n] {
            for (int i = 0; i < takings; i++)
                stock->take(twice(n));
        });
    for (auto &t : threads)
        t.join();
    if (stock->left() == 70)
        abort();
}

} // namespace shop

int main() { shop::run(); }
