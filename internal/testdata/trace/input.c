// What the kernel reads and writes: a read into a watched buffer, also next to it,
// a write from it, and the same byte again.
// WATCH: buffer 8, buffer+8 8, size 8
// STDIN: twelve bytes
// LEAST: 9
// ENDS: exit 0
#include <unistd.h>

char buffer[64] __attribute__((aligned(64)));
volatile ssize_t size;

int main(void)
{
	int ends[2];

	size = read(0, buffer + 4, sizeof(buffer) - 4);
	if (size < 12 || pipe(ends))
		return 1;
	if (write(ends[1], buffer + 6, 4) != 4)
		return 2;
	buffer[0] = buffer[5];
	if (read(ends[0], buffer + 6, 4) != 4)
		return 3;
	size = buffer[9];
	return 0;
}
