/* The number of bytes of an array is computed in 32 bits, and is more than these hold. */
// FLAGS: -O2
// ENDS: SIGSEGV
// WAY: outside in main, of a size that lost bits in Samples::Samples
#include <cstdint>
#include <cstdio>
#include <cstdlib>

struct Sample {
	double at, value[5];
};

class Samples {
public:
	__attribute__((noinline)) explicit Samples(uint32_t count)
	{
		uint32_t bytes = count * static_cast<uint32_t>(sizeof(Sample));
		list = static_cast<Sample *>(std::malloc(bytes));
	}
	Sample *list;
};

int main(int argc, char **)
{
	uint32_t count = argc > 1 ? 100 : 89500000;
	Samples s(count);
	double sum = 0;
	for (uint32_t i = 0; i < count; i += 4096) {
		s.list[i].at = i;
		sum += s.list[i].at;
	}
	std::printf("%f\n", sum);
	return 0;
}
