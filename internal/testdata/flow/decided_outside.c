// FLAGS: -O1
// ENDS: SIGSEGV
// WAY: outside in kind_before
// The distance back to the head of a record is wrong. What is read there, before the start of the records, decides that a frame is
// looked up, and there is none.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct frame {
	long kind;
	struct frame *outer;
};

__attribute__((noinline)) static int kind_before(const unsigned char *record)
{
	return record[-(long)record[0]];
}

__attribute__((noinline)) static long outer_kind(struct frame *frames, long last)
{
	struct frame *f = (struct frame *)((char *)frames + last * 64);
	return f->outer->kind;
}

int main(void)
{
	unsigned char *records = malloc(32);
	struct frame *frames = calloc(4, sizeof *frames);
	volatile long last = -1;

	memset(records, 7, 32);
	records[20] = 36; // the bug: 4 was meant
	if (kind_before(records + 20) != 7)
		printf("%ld\n", outer_kind(frames, last));
	return 0;
}
