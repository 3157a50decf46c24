/* Lines for people and scripts: composed on the stack and written with one
 * system call, so that lines of several threads do not mix. Nothing here
 * allocates or takes a lock; a signal handler may use it. */
#include "agent.h"
#include "syscall.h"

struct dg_text {
	size_t used;
	char bytes[2048];
};

static void dg_put_char(struct dg_text *t, char c)
{
	/* The last byte is kept for the end of the line. */
	if (t->used < sizeof(t->bytes) - 1)
		t->bytes[t->used++] = c;
}

static void dg_put(struct dg_text *t, const char *s)
{
	while (*s)
		dg_put_char(t, *s++);
}

static void dg_put_number(struct dg_text *t, uint64_t value, unsigned base)
{
	char digits[20];
	unsigned n = 0;

	do
		digits[n++] = "0123456789abcdef"[value % base];
	while ((value /= base));
	while (n)
		dg_put_char(t, digits[--n]);
}

static void dg_put_decimal(struct dg_text *t, uint64_t value)
{
	dg_put_number(t, value, 10);
}

static void dg_put_hex(struct dg_text *t, uint64_t value)
{
	dg_put(t, "0x");
	dg_put_number(t, value, 16);
}

/* Text from outside as a value: what would end the value or the line, or
 * confuse a terminal, becomes %XX as in a URL. */
static void dg_put_quoted(struct dg_text *t, const char *s, size_t length)
{
	for (size_t i = 0; i < length && s[i]; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c > ' ' && c < 0x7f && c != '%') {
			dg_put_char(t, (char)c);
			continue;
		}
		dg_put_char(t, '%');
		dg_put_char(t, "0123456789abcdef"[c >> 4]);
		dg_put_char(t, "0123456789abcdef"[c & 15]);
	}
}

static void dg_put_key(struct dg_text *t, const char *key)
{
	dg_put_char(t, ' ');
	dg_put(t, key);
	dg_put_char(t, '=');
}

/* Ends the line and, if it is wanted, writes it; a short write is not
 * repeated, so that a line is never torn. */
static void dg_put_line(struct dg_text *t, int fd, bool tell)
{
	t->bytes[t->used++] = '\n';
	dg_sys3(SYS_write, fd, t->bytes, tell ? t->used : 0);
	t->used = 0;
}
