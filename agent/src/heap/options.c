/* DIAGNOSE_OPTIONS=name=value:name=value. An unknown or out-of-range one is a
 * warning on standard error and leaves the default: a program in production
 * must not fail to start because of a typing error, and must not run silently
 * with something else than was asked for.
 *
 *   on_error=abort|log|continue   what happens when evidence is found; after commas
 *                                 what happens for single kinds, named as in the lines of
 *                                 error.c: on_error=abort,mismatch=log
 *   log_path=FILE                 where lines go; default: standard error
 *   quarantine_mb=N               freed memory kept back, MiB a thread
 *   canary=HEX                    the secret of which guards are made, 2 or 16 digits; none of its bytes may be 0
 *   fill_bytes=N                  how much of a freed object is filled, a multiple of 16
 *   fresh_byte=N                  what fresh memory is filled with, from 1 to 255; calloc's is 0 all the same
 *   stacks=N                      frames kept of an allocation site
 *   check_interval_ms=N           check the whole heap that often; 0: never
 *   exitcode=N                    exit status instead of 0 when evidence was found
 *
 * The whole heap is checked, and exitcode heeded, where exit runs: not by a
 * program that ends by _exit, quick_exit or a signal.
 */
#include "agent.h"
#include "syscall.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define DG_DEFAULT_FILL 128
#define DG_DEFAULT_STACKS 8
#define DG_DEFAULT_QUARANTINE_MB 1
#define DG_MAX_QUARANTINE_MB 65536
/* A ring's fill check reads it all, and a large object's fill is a copy of
 * known words: more than a page tells nothing more. */
#define DG_MAX_FILL 4096

static char dg_log_path[4096];

struct dg_option {
	const char *name, *value;
	size_t name_length, length;
};

static bool dg_is(const char *text, size_t length, const char *word)
{
	size_t i = 0;

	for (; i < length && word[i]; i++)
		if (text[i] != word[i])
			return false;
	return i == length && !word[i];
}

static bool dg_parse_number(const struct dg_option *o, uint64_t low, uint64_t high, uint64_t *out)
{
	uint64_t value = 0;

	if (!o->length)
		return false;
	for (size_t i = 0; i < o->length; i++) {
		unsigned digit = (unsigned)(unsigned char)o->value[i] - '0';

		if (digit > 9 || value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*out = value;
	return value >= low && value <= high;
}

static bool dg_parse_uint(const struct dg_option *o, uint32_t low, uint32_t high, uint32_t *out)
{
	uint64_t value;

	if (!dg_parse_number(o, low, high, &value))
		return false;
	*out = (uint32_t)value;
	return true;
}

static int dg_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A byte of 0 is as refused as it was when this was the guard itself; and 0 is
 * what no option says. */
static bool dg_parse_canary(const struct dg_option *o, uint64_t *out)
{
	const char *s = o->value;
	size_t length = o->length;
	uint64_t value = 0;

	if (length > 2 && s[0] == '0' && (s[1] | 0x20) == 'x')
		s += 2, length -= 2;
	if (length != 2 && length != 16)
		return false;
	for (size_t i = 0; i < length; i++) {
		int digit = dg_hex_digit(s[i]);

		if (digit < 0)
			return false;
		value = value << 4 | (uint64_t)digit;
	}
	if (length == 2)
		value *= 0x0101010101010101ull;
	for (uint64_t rest = value, i = 0; i < 8; i++, rest >>= 8)
		if (!(rest & 0xff))
			return false;
	*out = value;
	return true;
}

/* Kinds of errors, as the lines of error.c and on_error name them. */
static const char *const dg_error_names[] = {
	[DG_ERROR_NONE] = "unknown",
	[DG_ERROR_OVERFLOW] = "overflow",
	[DG_ERROR_UNDERFLOW] = "underflow",
	[DG_ERROR_USE_AFTER_FREE] = "use-after-free",
	[DG_ERROR_DOUBLE_FREE] = "double-free",
	[DG_ERROR_FREE_MIDDLE] = "free-middle",
	[DG_ERROR_FREE_WILD] = "free-wild",
	[DG_ERROR_FREE_STACK] = "free-stack",
	[DG_ERROR_FREE_GLOBAL] = "free-global",
	[DG_ERROR_FREE_FOREIGN] = "free-foreign",
	[DG_ERROR_MISMATCH] = "mismatch",
};

static bool dg_parse_deed(const char *text, size_t length, uint32_t *out)
{
	static const char words[][9] = { "abort", "log", "continue" };

	for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (dg_is(text, length, words[i])) {
			*out = i;
			return true;
		}
	return false;
}

/* WORD is for all kinds, KIND=WORD for one. */
static bool dg_parse_kind(const char *text, size_t length, struct dg_options *options)
{
	uint32_t deed, kind;
	size_t name = 0;

	while (name < length && text[name] != '=')
		name++;
	if (name == length) {
		options->on_kinds = 0;
		return dg_parse_deed(text, length, &options->on_error);
	}
	if (!dg_parse_deed(text + name + 1, length - name - 1, &deed))
		return false;
	for (kind = DG_ERROR_OVERFLOW; kind <= DG_ERROR_MISMATCH; kind++)
		if (dg_is(text, name, dg_error_names[kind])) {
			options->on_kinds &= ~(3u << 2 * kind);
			options->on_kinds |= (deed + 1) << 2 * kind;
			return true;
		}
	return false;
}

static bool dg_parse_on_error(const struct dg_option *o, struct dg_options *options)
{
	struct dg_options parsed = *options;
	const char *p = o->value, *end = o->value + o->length;
	size_t length;

	do {
		for (length = 0; p + length < end && p[length] != ',';)
			length++;
		if (!dg_parse_kind(p, length, &parsed))
			return false;
		p += length + 1;
	} while (p <= end);
	*options = parsed;
	return true;
}

/* Whether the file can be written, or made where it does not exist. */
static bool dg_log_writable(void)
{
	char *name = dg_log_path;
	long error = dg_sys4(SYS_faccessat, AT_FDCWD, dg_log_path, W_OK, 0);

	if (error != -ENOENT)
		return !error;
	for (char *p = dg_log_path; *p; p++)
		if (*p == '/')
			name = p;
	*name = 0;
	error = dg_sys4(SYS_faccessat, AT_FDCWD, name == dg_log_path ? "/" : dg_log_path, W_OK | X_OK, 0);
	*name = '/';
	return !error;
}

/* Made absolute, because the program may change its directory before the first
 * line is written. */
static bool dg_parse_log_path(const struct dg_option *o)
{
	size_t used = 0;

	if (!o->length || o->length >= sizeof(dg_log_path))
		return false;
	if (o->value[0] != '/') {
		long n = dg_sys2(SYS_getcwd, dg_log_path, sizeof(dg_log_path));

		/* A directory out of reach is told with a prefix instead of '/'. */
		if (n <= 1 || dg_log_path[0] != '/' || (size_t)n + o->length >= sizeof(dg_log_path)) {
			dg_log_path[0] = 0;
			return false;
		}
		used = (size_t)n;
		dg_log_path[used - 1] = '/';
	}
	memcpy(dg_log_path + used, o->value, o->length);
	dg_log_path[used + o->length] = 0;
	if (dg_log_writable())
		return true;
	dg_log_path[0] = 0;
	return false;
}

/* Returns false for a value that cannot be used; *known tells a wrong value
 * from a wrong name. */
static bool dg_apply(struct dg_options *options, const struct dg_option *o, bool *known)
{
	uint64_t megabytes;

	*known = true;
#define DG_NAME(text) dg_is(o->name, o->name_length, text)
	if (DG_NAME("on_error"))
		return dg_parse_on_error(o, options);
	if (DG_NAME("log_path"))
		return dg_parse_log_path(o);
	if (DG_NAME("canary"))
		return dg_parse_canary(o, &options->canary);
	if (DG_NAME("stacks"))
		return dg_parse_uint(o, 1, DG_FRAMES, &options->stacks);
	if (DG_NAME("check_interval_ms"))
		return dg_parse_uint(o, 0, UINT32_MAX, &options->check_interval_ms);
	if (DG_NAME("exitcode"))
		return dg_parse_uint(o, 0, 255, &options->exitcode);
	if (DG_NAME("fresh_byte"))
		return dg_parse_uint(o, 1, 255, &dg_fresh_byte);
	if (DG_NAME("fill_bytes")) {
		uint32_t fill;

		if (!dg_parse_uint(o, 0, DG_MAX_FILL, &fill) || fill % 16)
			return false;
		options->fill_bytes = fill;
		return true;
	}
	if (DG_NAME("quarantine_mb")) {
		if (!dg_parse_number(o, 0, DG_MAX_QUARANTINE_MB, &megabytes))
			return false;
		options->quarantine = megabytes << 20;
		return true;
	}
#undef DG_NAME
	*known = false;
	return false;
}

static DG_COLD void dg_warn_option(const struct dg_option *o, bool known)
{
	struct dg_text t = { .used = 0 };

	dg_put(&t, "diagnose: warning: DIAGNOSE_OPTIONS:");
	dg_put(&t, known ? " unusable value" : " unknown option");
	dg_put_key(&t, "name");
	dg_put_quoted(&t, o->name, o->name_length < 64 ? o->name_length : 64);
	dg_put_key(&t, "value");
	dg_put_quoted(&t, o->value, o->length < 256 ? o->length : 256);
	dg_put_line(&t, 2, true);
}

static void dg_options(struct dg_options *options, const char *text)
{
	*options = (struct dg_options){
		.on_error = DG_ABORT,
#ifdef DG_RECORD
		/* Harmless without the agent: the failure that the recording is for comes later. */
		.on_kinds = (uint32_t)(DG_CONTINUE + 1) << 2 * DG_ERROR_MISMATCH,
#endif
		.stacks = DG_DEFAULT_STACKS,
		.fill_bytes = DG_DEFAULT_FILL,
		.quarantine = (uint64_t)DG_DEFAULT_QUARANTINE_MB << 20,
	};
	while (text && *text) {
		struct dg_option o = { .name = text };
		bool known;

		while (*text && *text != '=' && *text != ':')
			text++;
		o.name_length = (size_t)(text - o.name);
		if (*text == '=')
			text++;
		o.value = text;
		while (*text && *text != ':')
			text++;
		o.length = (size_t)(text - o.value);
		if (*text == ':')
			text++;
		if (!o.name_length && !o.length)
			continue;
		if (!dg_apply(options, &o, &known))
			dg_warn_option(&o, known);
	}
}
