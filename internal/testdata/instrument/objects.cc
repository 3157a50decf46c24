// std::atomic of every size, virtual functions while objects are made and unmade, exceptions through
// instrumented functions, static locals.
// FLAGS: -std=c++20 -latomic
#include <atomic>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

unsigned long sum;

void take(unsigned long x) { sum = (sum ^ x) * 0x9e3779b97f4a7c15ul + 1; }

struct Base {
	Base() { take(kind()); }
	virtual ~Base() { take(kind()); }
	virtual unsigned long kind() const { return 1; }
	long member = 3;
};

struct Side {
	virtual unsigned long side() const { return 10; }
	virtual ~Side() = default;
};

struct Derived : Base, virtual Side {
	Derived() { take(kind()); }
	~Derived() override { take(kind()), take(side()); }
	unsigned long kind() const override { return 2 + member; }
	unsigned long side() const override { return 20; }
};

enum class Colour : short { red, green };
struct alignas(8) Pair {
	int a, b;
	bool operator==(const Pair &) const = default;
};

template <class T> void numbers()
{
	std::atomic<T> a{T(100)};
	a.store(T(a.load() + 1), std::memory_order_release);
	take(a.exchange(T(50), std::memory_order_acq_rel));
	take(a++), take(--a), take(a += 3), take(a.fetch_xor(T(0x11), std::memory_order_relaxed));
	take(a.fetch_and(T(0x7e))), take(a |= 1), take(a.fetch_sub(2, std::memory_order_consume));
	T expected = a;
	take(a.compare_exchange_strong(expected, T(9))), take(a.compare_exchange_strong(expected, T(8))), take(expected);
	while (!a.compare_exchange_weak(expected, T(10), std::memory_order_acq_rel, std::memory_order_acquire))
		;
	take(a), take(a.is_lock_free());
	alignas(sizeof(T)) T plain = 4;
	std::atomic_ref<T> r(plain);
	take(r.fetch_add(3)), take(plain);
}

[[gnu::noinline]] long thrower(long n)
{
	Derived d;
	std::vector<long> v(n, n);
	if (n > 2)
		throw std::runtime_error("of " + std::to_string(v.back()));
	return v[0];
}

const std::string &once()
{
	static const std::string text = "made once";
	return text;
}

} // namespace

int main()
{
	numbers<char>(), numbers<unsigned char>(), numbers<short>(), numbers<int>(), numbers<unsigned>(), numbers<long>(), numbers<unsigned long long>();
	std::atomic<bool> yes{false};
	std::atomic<Colour> colour{Colour::red};
	std::atomic<Pair> pair{Pair{1, 2}};
	std::atomic<double> real{0.5};
	std::atomic<int *> pointer{nullptr};
	std::atomic<std::shared_ptr<Base>> *none = nullptr;
	int array[4] = {};
	take(yes.exchange(true)), take(yes);
	colour = Colour::green;
	take((unsigned long)colour.load());
	Pair seen{1, 2};
	take(pair.compare_exchange_strong(seen, Pair{3, 4})), take(pair.load().b);
	real = real + 2;
	take((unsigned long)(real * 8));
	pointer = array;
	take((++pointer) - array), take(none == nullptr);
	std::atomic_flag flag = ATOMIC_FLAG_INIT;
	take(flag.test_and_set()), take(flag.test());
	std::atomic_thread_fence(std::memory_order_seq_cst);
	for (long i = 1; i < 5; i++) {
		try {
			take(thrower(i));
		} catch (const std::exception &e) {
			take(std::string(e.what()).size());
		}
	}
	std::unique_ptr<Base> object = std::make_unique<Derived>();
	take(object->kind()), take(dynamic_cast<Side &>(*object).side());
	object.reset();
	take(once().size() + once().size());
	std::printf("%016lx\n", sum);
	return 0;
}
