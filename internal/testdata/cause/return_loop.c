// The digits of a number go into an array on the stack that has no guard: there are
// more of them in base 2, and the function comes back to ones and zeros.
// CAUSE kind=stack-smashing variable="digits|digits*|*digits*|*[*"
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: 123456789 2
// RUNS pass: 123456789 10
// FLAGS: -fno-stack-protector
#include <stdio.h>
#include <stdlib.h>

static long printed;
static int count;
static unsigned number, base;

static __attribute__((noinline)) void print_digits(const int *digits)
{
	while (count--)
		printed = printed * 16 + digits[count];
}

static __attribute__((noinline)) void print(void)
{
	int digits[12];

	do {
#ifdef FIXED
		if (count == 12)
			break;
#endif
		digits[count++] = (int)(number % base); // BUG
		number /= base;
	} while (number);
	print_digits(digits);
}

int main(int argc, char **argv)
{
	number = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	base = argc > 2 ? (unsigned)atoi(argv[2]) : 10;
	print();
	printf("%lx\n", printed);
	return 0;
}
