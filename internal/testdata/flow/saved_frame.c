/* A copy overwrites the frame pointer that its function saved. So the caller takes its return address from where its frame is not. */
// FLAGS: -O0 -fno-omit-frame-pointer -fno-stack-protector
// ENDS: SIGSEGV
// WAY: constant in main, through take
#include <stdio.h>
#include <string.h>

static long room[8] = { 0, 0, 0, 0, 0, 0x1234 };

__attribute__((noinline)) static void take(const long *from, int size)
{
	memcpy((char *)__builtin_frame_address(0) - 8, from, size);
}

__attribute__((noinline)) static long twice(const long *from, int size)
{
	volatile char pad[size]; // so that the stack pointer is restored from the frame pointer
	pad[0] = 1;
	take(from, size);
	return 2 + (size > 100 ? pad[0] : 0);
}

int main(int argc, char **argv)
{
	long given[2];
	given[0] = 7;
	given[1] = (long)&room[4];
	printf("%ld\n", twice(given, argc > 1 ? 8 : 16));
	return 0;
}
