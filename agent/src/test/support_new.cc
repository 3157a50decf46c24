// C++'s allocation functions: what fails and how, alignment, sized forms,
// exceptions through them; and in SUPPORT_REPLACE, a program that replaces some
// of them itself.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "support_agent.h"

namespace {

volatile size_t huge = std::numeric_limits<ptrdiff_t>::max() / 2;
void *volatile sink; // an allocation that nobody looks at may be left out
unsigned handled;

void give_up()
{
	if (++handled == 3)
		std::set_new_handler(nullptr);
}

struct Refuse {};

void refuse()
{
	throw Refuse();
}

template <typename Call, typename Thrown = std::bad_alloc> unsigned thrown(Call call, const Thrown * = nullptr)
{
	try {
		call();
	} catch (const Thrown &) {
		return 1;
	}
	return 0;
}

void failing()
{
	const std::align_val_t wide{4096};

	// Each form asks the handler until there is none, and throws then.
	std::set_new_handler(give_up);
	CHECK(thrown([] { sink = operator new(huge); }) && handled == 3);
	handled = 0;
	std::set_new_handler(give_up);
	CHECK(thrown([] { sink = operator new[](huge); }) && handled == 3);
	handled = 0;
	std::set_new_handler(give_up);
	CHECK(thrown([&] { sink = operator new(huge, wide); }) && handled == 3);
	handled = 0;
	std::set_new_handler(give_up);
	CHECK(!operator new(huge, std::nothrow) && handled == 3);
	CHECK(!operator new[](huge, std::nothrow));
	CHECK(!operator new(huge, wide, std::nothrow));
	CHECK(!operator new[](huge, wide, std::nothrow));

	const Refuse *refused = nullptr;
	std::set_new_handler(refuse);
	CHECK(thrown([] { sink = operator new(huge); }, refused));
	CHECK(thrown([&] { sink = operator new[](huge, wide); }, refused));
	std::set_new_handler(nullptr);
	CHECK(thrown([] { std::vector<char> v(huge); }));
}

unsigned alive;

struct Thrower {
	std::string text = std::string(100, 't');

	explicit Thrower(bool fail)
	{
		alive++;
		if (fail) {
			alive--;
			throw std::runtime_error(std::string(500, 'e'));
		}
	}
	~Thrower() { alive--; }
};

// What a constructor throws gives the memory back, by the matching delete.
void throwing()
{
	const std::runtime_error *error = nullptr;

	for (unsigned i = 0; i < 1000; i++) {
		CHECK(thrown([] { delete new Thrower(true); }, error));
		CHECK(thrown([] { auto p = std::make_unique<Thrower>(false); throw std::runtime_error(p->text); }, error));
		CHECK(thrown([] { Thrower *all = new Thrower[3]{Thrower(false), Thrower(false), Thrower(true)}; delete[] all; }, error));
	}
	CHECK(alive == 0);
}

struct alignas(128) Wide {
	char bytes[300];
};

struct Destroyed {
	char bytes[24];
	~Destroyed() { bytes[0]++; }
};

void forms()
{
	for (size_t n = 1; n < 100; n++) {
		Wide *one = new Wide, *all = new Wide[n], *quiet = new (std::nothrow) Wide;

		CHECK((uintptr_t(one) | uintptr_t(all) | uintptr_t(quiet)) % 128 == 0);
		memset(all, 1, n * sizeof(Wide));
		delete one;
		delete[] all;
		delete quiet;
		Destroyed *array = new Destroyed[n];
		delete[] array;
		operator delete(operator new(n), n);
		operator delete[](operator new[](n), n);
		operator delete(operator new(n, std::align_val_t(64)), n, std::align_val_t(64));
		operator delete[](operator new[](n, std::align_val_t(64)), std::align_val_t(64));
		operator delete(operator new(n, std::nothrow), std::nothrow);
		operator delete[](operator new[](n, std::nothrow), std::nothrow);
		operator delete[](operator new[](n, std::align_val_t(32), std::nothrow), std::align_val_t(32), std::nothrow);
		operator delete(nullptr);
		operator delete[](nullptr);
		operator delete(nullptr, n);
	}
	void *none = operator new(0), *other = operator new(0);
	CHECK(none && other && none != other);
	operator delete(none);
	operator delete(other);
}

} // namespace

#ifdef SUPPORT_REPLACE
// The standard's default versions of the other forms call these two.
static unsigned long replaced_new, replaced_delete;

void *operator new(size_t size)
{
	replaced_new++;
	if (void *p = size < huge / 2 ? malloc(size + 16) : nullptr)
		return static_cast<char *>(p) + 16;
	throw std::bad_alloc();
}

void operator delete(void *p) noexcept
{
	replaced_delete++;
	if (p)
		free(static_cast<char *>(p) - 16);
}


static void replaced()
{
	unsigned long news = replaced_new, deletes = replaced_delete;

	for (size_t n = 1; n < 100; n++) {
		operator delete[](operator new[](n));
		operator delete(operator new(n), n);
		operator delete[](operator new[](n), n);
		operator delete(operator new(n, std::nothrow), std::nothrow);
		operator delete[](operator new[](n, std::nothrow), std::nothrow);
	}
	CHECK(replaced_new == news + 99 * 5 && replaced_delete == deletes + 99 * 5);
	CHECK(!operator new(huge, std::nothrow) && !operator new[](huge, std::nothrow));
	CHECK(thrown([] { sink = operator new[](huge); }));
	std::vector<std::string> strings(1000, std::string(100, 's'));
	CHECK(replaced_new > news + 99 * 5 + 1000);
	// Aligned forms are not replaced with these.
	operator delete(operator new(100, std::align_val_t(64)), std::align_val_t(64));
	throwing();
}
#endif

int main()
{
	agent_root();
#ifdef SUPPORT_REPLACE
	replaced();
#else
	failing();
	forms();
	throwing();
#endif
	CHECK(agent_root()->error_count == 0);
	puts("ok");
	return 0;
}
