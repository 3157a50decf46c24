// Every way of getting at a word: loads and stores of all widths, read-modify-write,
// string instructions, vectors, accesses that straddle words.
// WATCH: word 8, buffer 8, buffer+8 8, pair 4
// LEAST: 60
// ENDS: exit 0
#include <stdint.h>
#include <string.h>
#include <emmintrin.h>

volatile uint64_t word __attribute__((aligned(64)));
volatile uint8_t buffer[64] __attribute__((aligned(64)));
volatile uint32_t pair[2] __attribute__((aligned(8)));
static uint64_t (*volatile call)(void);
static volatile int sink;

static uint64_t called(void)
{
	return 7;
}

__attribute__((noinline)) static void repeat(void)
{
	void *to = (void *)buffer;
	const void *from = (const void *)&word;
	uint64_t count = 24;

	__asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(0x5a) : "memory");
	to = (uint8_t *)buffer + 3;
	count = 8;
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
	to = (uint8_t *)buffer + 31;
	from = (const uint8_t *)buffer + 15;
	count = 2;
	__asm__ volatile("std; rep movsq; cld" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
	from = (const void *)buffer;
	__asm__ volatile("lodsq; lodsb" : "+S"(from) : : "rax", "memory");
}

int main(void)
{
	uint64_t old = 5;

	for (int i = 0; i < 3; i++)
		word = word + (uint64_t)i;
	word = word;
	*(volatile uint8_t *)&word = 1;
	*((volatile uint16_t *)&word + 1) = 0x1234;
	__asm__ volatile("incq %0; negl %1; xaddq %2, %0" : "+m"(word), "+m"(pair[0]), "+r"(old));
	__asm__ volatile("lock cmpxchgq %2, %0" : "+m"(word), "+a"(old) : "r"(9ull));
	old = word;
	__asm__ volatile("lock cmpxchgq %2, %0" : "+m"(word), "+a"(old) : "r"(9ull));
	__asm__ volatile("bsfq (%0), %0" : "+r"(*(uint64_t *)&(uint64_t){ (uint64_t)&word }));
	_mm_storeu_si128((__m128i *)((uint8_t *)buffer + 5), _mm_set1_epi8(3));
	_mm_store_si128((__m128i *)((uint8_t *)buffer + 16), _mm_setzero_si128());
	sink = _mm_cvtsi128_si32(_mm_loadu_si128((const __m128i *)((const uint8_t *)buffer + 1)));
	*(volatile uint64_t *)(buffer + 4) = 0x1122334455667788;
	*(volatile uint32_t *)(buffer + 6) = 0;
	sink = *(volatile uint16_t *)(buffer + 7);
	repeat();
	memset((void *)buffer, 0, 64);
	memcpy((void *)buffer, (const void *)"a string that is longer than a word", 36);
	pair[1] = pair[0];
	call = called;
	sink = (int)call();
	__asm__ volatile("pushq %0; popq %0" : "+m"(word));
	return 0;
}
