// A number is written as text, taken apart and put together, and read again.
//
// FLAGS: -O1
// ENDS: SIGSEGV
// WAY: returned in stamp
#include <cstdio>
#include <cstdlib>
#include <ctime>
char rows[32][4];
__attribute__((noinline)) static unsigned stamp() { return static_cast<unsigned>(std::time(nullptr)); }
struct Packet { unsigned char bytes[24]; };
__attribute__((noinline)) static void put(Packet *p, unsigned number)
{
	for (int i = 0; i < 4; i++)
		p->bytes[6 + i] = number >> (8 * i);
}
__attribute__((noinline)) static unsigned get(const Packet *p)
{
	unsigned number;
	__builtin_memcpy(&number, p->bytes + 6, sizeof(number));
	return number;
}
int main()
{
	char line[40];
	std::sprintf(line, "%u seconds", stamp());
	Packet packet;
	put(&packet, std::strtoul(line, nullptr, 10));
	std::printf("%d\n", rows[get(&packet) * 64L][0]);
	return 0;
}
