// Accesses by instructions that go elsewhere, and by those whose value is not in
// a register after them; each often enough for the learnt value to count.
// WATCH: target 8, word 8, small 2, bits 4
// LEAST: 350
// ENDS: exit 0
#include <stdint.h>

uint64_t target, word;
uint16_t small;
uint32_t bits;
static uint64_t calls;

__attribute__((noinline, used)) static void called(void)
{
	calls++;
}

__attribute__((noinline)) static void jump(void)
{
	uint64_t x = 3, y = 4;

	__asm__ volatile("call *%0" : : "m"(target) : "memory", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11");
	__asm__ volatile("pushq %0; popq %0" : "+m"(word) : : "memory");
	__asm__ volatile("xchgq %0, %1; lock xaddq %0, %1" : "+r"(x), "+m"(word));
	__asm__ volatile("cmpq $7, %1; cmoveq %1, %0; sete %b1" : "+r"(y), "+m"(word));
	__asm__ volatile("addw $3, %0; rolw $1, %0; notw %0; negw %0; sbbw $1, %0; incw %0; xorw %w1, %0" : "+m"(small) : "r"(y));
	__asm__ volatile("movzwl (%1), %k0; movswq (%1), %0; movb %b0, 1(%1); movb %h0, (%1)" : "=&Q"(y) : "R"(&small) : "memory");
	__asm__ volatile("btsl $5, %0; shll $1, %0; orl $0x80, %0; bswapl %k1; movl %k1, %0" : "+m"(bits), "+r"(x));
	__asm__ volatile("andb $0x7f, 1(%0)" : : "r"(&bits) : "memory");
	__asm__ volatile("movd %0, %%xmm0; paddd %%xmm0, %%xmm0; movd %%xmm0, %0" : "+m"(bits) : : "xmm0");
	__asm__ volatile("fildl %0; fistpl %0" : "+m"(bits));
	__asm__ volatile("mulb %1" : "=a"(x) : "m"(bits), "a"(7ul) : "cc");
}

int main(void)
{
	target = (uint64_t)called;
	for (uint64_t i = 0; i < 12; i++) {
		word = i;
		bits = 0x01010101u * (uint32_t)(i | 1);
		jump();
	}
	return calls != 12;
}
