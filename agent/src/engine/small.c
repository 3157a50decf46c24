/* Small things that several parts of the engine need. */
#include "engine/engine.h"
#include "syscall.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/uio.h>

static void dg_copy(void *to, const void *from, uint64_t length)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(length) : : "memory");
}

/* What the compiler makes of initialisers and assignments of structs, though
 * nothing here may call libc. agent.c calls libc's. */
__attribute__((used)) static void *dg_memset(void *to, int byte, size_t length) __asm__("memset");
static void *dg_memset(void *to, int byte, size_t length)
{
	void *at = to;

	__asm__ volatile("rep stosb" : "+D"(at), "+c"(length) : "a"(byte) : "memory");
	return to;
}

__attribute__((used)) static void *dg_memcpy(void *to, const void *from, size_t length) __asm__("memcpy");
static void *dg_memcpy(void *to, const void *from, size_t length)
{
	dg_copy(to, from, length);
	return to;
}

/* XXH64 (Collet): four independent lanes, 32 bytes a round. */
#define DG_PRIME_1 0x9e3779b185ebca87ull
#define DG_PRIME_2 0xc2b2ae3d27d4eb4full
#define DG_PRIME_3 0x165667b19e3779f9ull
#define DG_PRIME_4 0x85ebca77c2b2ae63ull
#define DG_PRIME_5 0x27d4eb2f165667c5ull

struct dg_word64 {
	uint64_t word;
} __attribute__((packed, may_alias));

struct dg_word32 {
	uint32_t word;
} __attribute__((packed, may_alias));

static inline uint64_t dg_rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static inline uint64_t dg_digest_round(uint64_t lane, uint64_t word)
{
	return dg_rotate(lane + word * DG_PRIME_2, 31) * DG_PRIME_1;
}

static inline uint64_t dg_digest_merge(uint64_t h, uint64_t lane)
{
	return (h ^ dg_digest_round(0, lane)) * DG_PRIME_1 + DG_PRIME_4;
}

static uint64_t dg_digest_tail(uint64_t h, const uint8_t *p, uint64_t left)
{
	for (; left >= 8; p += 8, left -= 8)
		h = dg_rotate(h ^ dg_digest_round(0, ((const struct dg_word64 *)p)->word), 27) * DG_PRIME_1 + DG_PRIME_4;
	if (left >= 4) {
		h = dg_rotate(h ^ ((const struct dg_word32 *)p)->word * DG_PRIME_1, 23) * DG_PRIME_2 + DG_PRIME_3;
		p += 4;
		left -= 4;
	}
	for (; left; p++, left--)
		h = dg_rotate(h ^ *p * DG_PRIME_5, 11) * DG_PRIME_1;
	h = (h ^ h >> 33) * DG_PRIME_2;
	h = (h ^ h >> 29) * DG_PRIME_3;
	return h ^ h >> 32;
}

static uint64_t dg_digest(const void *bytes, uint64_t length, uint64_t seed)
{
	const uint8_t *p = bytes;
	uint64_t a = seed + DG_PRIME_1 + DG_PRIME_2, b = seed + DG_PRIME_2, c = seed, d = seed - DG_PRIME_1, left = length, h;

	if (length < 32)
		return dg_digest_tail(seed + DG_PRIME_5 + length, p, length);
	for (; left >= 32; p += 32, left -= 32) {
		const struct dg_word64 *w = (const struct dg_word64 *)p;

		a = dg_digest_round(a, w[0].word);
		b = dg_digest_round(b, w[1].word);
		c = dg_digest_round(c, w[2].word);
		d = dg_digest_round(d, w[3].word);
	}
	h = dg_rotate(a, 1) + dg_rotate(b, 7) + dg_rotate(c, 12) + dg_rotate(d, 18);
	h = dg_digest_merge(dg_digest_merge(dg_digest_merge(dg_digest_merge(h, a), b), c), d);
	return dg_digest_tail(h + length, p, left);
}

#define DG_PAGE_BYTES 4096ull
#define DG_PAGES_ASKED 64

/* A request that there is not is refused after the read of its argument
 * (rt_sigprocmask in the kernel's signal.c), at a part of what process_vm_readv costs. */
static bool dg_word_readable(uint64_t address)
{
	const long no_request = -1;

	return dg_sys4(SYS_rt_sigprocmask, no_request, (long)(address & ~7ull), 0, 8) == -EINVAL;
}

/* One byte of every page is enough: the kernel tells by what it could read. */
static bool dg_readable(uint64_t address, uint64_t length)
{
	struct iovec pages[DG_PAGES_ASKED], into;
	uint8_t bytes[DG_PAGES_ASKED];
	uint64_t end = address + length, at = address;
	long pid;

	if (end < address)
		return false;
	if (length && (address & 7) + length <= 8)
		return dg_word_readable(address);
	pid = dg_sys0(SYS_getpid);
	while (at < end) {
		long count = 0;

		for (; at < end && count < DG_PAGES_ASKED; count++) {
			pages[count] = (struct iovec){ (void *)at, 1 };
			at = (at & ~(DG_PAGE_BYTES - 1)) + DG_PAGE_BYTES;
			if (!at)
				end = 0;
		}
		into = (struct iovec){ bytes, (size_t)count };
		if (dg_sys(SYS_process_vm_readv, pid, (long)&into, 1, (long)pages, count, 0) != count)
			return false;
	}
	return true;
}
