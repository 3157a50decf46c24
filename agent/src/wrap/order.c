/* Calls that libc serialises by locks of its own. As long as the program has one
 * thread they go straight on; then each is an event, whose ticket is taken while
 * the lock, or one of ours in its place, is held.
 *
 * Libc's locks are not seen by the engine, so a replay must never come to one
 * that is taken: it waits for its turn before it asks for the lock. */
#include "agent.h"
#include "engine/thread.h"
#include "wrap/next.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <wchar.h>

/* glibc's: what a cancellation runs when it leaves the frame. pthread.h has it
 * only as a macro that saves all registers. */
extern void _pthread_cleanup_push(struct _pthread_cleanup_buffer *, void (*)(void *), void *);
extern void _pthread_cleanup_pop(struct _pthread_cleanup_buffer *, int);

DG_NEXT(void, flockfile, (FILE *));
DG_NEXT(int, ftrylockfile, (FILE *));
DG_NEXT(void, funlockfile, (FILE *));

struct dg_ordered {
	FILE *file; /* NULL: a family */
	long family;
	long site;
	struct _pthread_cleanup_buffer cleanup;
};

static inline bool dg_orders(void)
{
	return DG_UNLIKELY(dg_many) && dg_engaged();
}

/* A replay goes other ways than its recording, which leave other registers and,
 * below the stack pointer, other return addresses: here the last one is the same. */
static DG_COLD void dg_order_forgets(void)
{
	DG_FORGET_REGISTERS();
}

static inline void dg_order_forget(void)
{
	dg_order_forgets();
	__asm__ volatile(""); /* so it is called, and not jumped to */
}

/* Takes the lock, or says that another thread has it. Not flockfile: one that waits leaves a mark in the lock.
 * No turn ends in here: a replay is past the event then. */
static inline bool dg_file_taken(FILE *file)
{
	return DG_WITHIN_REAL(DG_CALL(ftrylockfile)(file));
}

static DG_COLD void dg_file_lock(FILE *file, long site)
{
	/* In the place of the padding, for which gcc pushes any register: the mode. */
	volatile long padding = 0;

	if (dg_mode == DG_MODE_REPLAY)
		dg_engine(DG_OP_ORDER_BEGIN, (long)file, DG_FAMILY_NONE, 0, site, 0);
	while (dg_file_taken(file))
		dg_engine(DG_OP_ORDER_WAIT, (long)file, 0, 0, 0, 0);
	if (dg_mode == DG_MODE_RECORD)
		dg_engine(DG_OP_ORDER_BEGIN, (long)file, DG_FAMILY_NONE, 0, site, 0);
	(void)padding;
	dg_order_forget();
}

static DG_COLD void dg_file_unlock(FILE *file)
{
	DG_CALL(funlockfile)(file);
	if (__atomic_load_n(&dg_order_waiters, __ATOMIC_RELAXED))
		dg_engine(DG_OP_ORDER_WAKE, 0, 0, 0, 0, 0);
	dg_order_forget();
}

static DG_COLD void dg_order_leave(void *what)
{
	struct dg_ordered *o = what;

	if (o->file)
		dg_file_unlock(o->file);
	else if (o->family)
		dg_engine(DG_OP_ORDER_END, o->family, 0, 0, 0, 0);
}

static DG_COLD void dg_order_enter(struct dg_ordered *o)
{
	if (o->file)
		dg_file_lock(o->file, o->site);
	else if (!dg_engine(DG_OP_ORDER_BEGIN, o->family, o->family, DG_ORDER_WHOLE, o->site, 0))
		o->family = 0;
	_pthread_cleanup_push(&o->cleanup, dg_order_leave, o);
}

static DG_COLD void dg_order_left(struct dg_ordered *o)
{
	_pthread_cleanup_pop(&o->cleanup, 0);
	dg_order_leave(o);
}

/* ---- calls about one FILE ---- */

#define DG_FILE_BODY(file_, call)                                                                                      \
	struct dg_ordered o;                                                                                           \
	__typeof__(call) result;                                                                                       \
                                                                                                                       \
	if (!dg_orders())                                                                                              \
		return call;                                                                                           \
	o = (struct dg_ordered){ .file = (file_), .site = DG_CALLER() };                                               \
	dg_order_enter(&o);                                                                                            \
	result = call;                                                                                                 \
	dg_order_left(&o);                                                                                             \
	return result

#define DG_FILE_VOID_BODY(file_, call)                                                                                 \
	struct dg_ordered o;                                                                                           \
                                                                                                                       \
	if (!dg_orders()) {                                                                                            \
		call;                                                                                                  \
		return;                                                                                                \
	}                                                                                                              \
	o = (struct dg_ordered){ .file = (file_), .site = DG_CALLER() };                                               \
	dg_order_enter(&o);                                                                                            \
	call;                                                                                                          \
	dg_order_left(&o)

#define DG_FILE(type, name, params, args, file)                                                                        \
	DG_WRAP(type, name, params)                                                                                    \
	{                                                                                                              \
		DG_FILE_BODY(file, DG_CALL(name) args);                                                                \
	}

#define DG_FILE_VOID(name, params, args, file)                                                                         \
	DG_WRAP(void, name, params)                                                                                    \
	{                                                                                                              \
		DG_FILE_VOID_BODY(file, DG_CALL(name) args);                                                           \
	}

DG_FILE(int, fputc, (int c, FILE *f), (c, f), f)
DG_FILE(int, putc, (int c, FILE *f), (c, f), f)
DG_FILE(int, _IO_putc, (int c, FILE *f), (c, f), f)
DG_FILE(int, putchar, (int c), (c), stdout)
DG_FILE(int, fputs, (const char *s, FILE *f), (s, f), f)
DG_FILE(int, puts, (const char *s), (s), stdout)
DG_FILE(size_t, fwrite, (const void *p, size_t size, size_t n, FILE *f), (p, size, n, f), f)
DG_FILE(size_t, fread, (void *p, size_t size, size_t n, FILE *f), (p, size, n, f), f)
DG_FILE(size_t, __fread_chk, (void *p, size_t room, size_t size, size_t n, FILE *f), (p, room, size, n, f), f)
DG_FILE(int, fgetc, (FILE *f), (f), f)
DG_FILE(int, getc, (FILE *f), (f), f)
DG_FILE(int, _IO_getc, (FILE *f), (f), f)
DG_FILE(int, getchar, (void), (), stdin)
DG_FILE(char *, fgets, (char *s, int n, FILE *f), (s, n, f), f)
DG_FILE(char *, __fgets_chk, (char *s, size_t room, int n, FILE *f), (s, room, n, f), f)
DG_FILE(int, ungetc, (int c, FILE *f), (c, f), f)
DG_FILE(ssize_t, getline, (char **to, size_t *n, FILE *f), (to, n, f), f)
DG_FILE(ssize_t, getdelim, (char **to, size_t *n, int end, FILE *f), (to, n, end, f), f)
DG_FILE(ssize_t, __getdelim, (char **to, size_t *n, int end, FILE *f), (to, n, end, f), f)
DG_FILE(int, fseek, (FILE *f, long to, int whence), (f, to, whence), f)
DG_FILE(int, fseeko, (FILE *f, off_t to, int whence), (f, to, whence), f)
DG_FILE(int, fseeko64, (FILE *f, off64_t to, int whence), (f, to, whence), f)
DG_FILE(long, ftell, (FILE *f), (f), f)
DG_FILE(off_t, ftello, (FILE *f), (f), f)
DG_FILE(off64_t, ftello64, (FILE *f), (f), f)
DG_FILE(int, fgetpos, (FILE *f, fpos_t *at), (f, at), f)
DG_FILE(int, fgetpos64, (FILE *f, fpos64_t *at), (f, at), f)
DG_FILE(int, fsetpos, (FILE *f, const fpos_t *at), (f, at), f)
DG_FILE(int, fsetpos64, (FILE *f, const fpos64_t *at), (f, at), f)
DG_FILE_VOID(rewind, (FILE *f), (f), f)
DG_FILE(int, setvbuf, (FILE *f, char *buffer, int mode, size_t size), (f, buffer, mode, size), f)
DG_FILE_VOID(setbuf, (FILE *f, char *buffer), (f, buffer), f)
DG_FILE_VOID(setbuffer, (FILE *f, char *buffer, size_t size), (f, buffer, size), f)
DG_FILE_VOID(setlinebuf, (FILE *f), (f), f)
DG_FILE_VOID(clearerr, (FILE *f), (f), f)
DG_FILE(int, feof, (FILE *f), (f), f)
DG_FILE(int, ferror, (FILE *f), (f), f)
DG_FILE_VOID(perror, (const char *s), (s), stderr)
DG_FILE(int, fputwc, (wchar_t c, FILE *f), (c, f), f)
DG_FILE(int, putwc, (wchar_t c, FILE *f), (c, f), f)
DG_FILE(int, fputws, (const wchar_t *s, FILE *f), (s, f), f)
DG_FILE(int, fgetwc, (FILE *f), (f), f)
DG_FILE(int, getwc, (FILE *f), (f), f)
DG_FILE(wchar_t *, fgetws, (wchar_t *s, int n, FILE *f), (s, n, f), f)

/* Those with a list of arguments, and those that make one. */
#define DG_FILE_LIST(name, params, args)                                                                               \
	DG_NEXT(int, name, params);                                                                                    \
	static int dg_list_##name(struct dg_ordered o, DG_STRIP params)                                                \
	{                                                                                                              \
		int result;                                                                                            \
                                                                                                                       \
		if (!dg_orders())                                                                                      \
			return DG_CALL(name) args;                                                                     \
		dg_order_enter(&o);                                                                                    \
		result = DG_CALL(name) args;                                                                           \
		dg_order_left(&o);                                                                                     \
		return result;                                                                                         \
	}
#define DG_STRIP(...) __VA_ARGS__

DG_FILE_LIST(vfprintf, (FILE *f, const char *format, va_list list), (f, format, list))
DG_FILE_LIST(__vfprintf_chk, (FILE *f, int flag, const char *format, va_list list), (f, flag, format, list))
DG_FILE_LIST(vfscanf, (FILE *f, const char *format, va_list list), (f, format, list))
DG_FILE_LIST(__isoc99_vfscanf, (FILE *f, const char *format, va_list list), (f, format, list))
DG_FILE_LIST(vfwprintf, (FILE *f, const wchar_t *format, va_list list), (f, format, list))

#define DG_OF(file_) ((struct dg_ordered){ .file = (file_), .site = DG_CALLER() })

#define DG_LIST(name, params, call)                                                                                    \
	DG_WRAP_ONLY(int, name, params)                                                                                \
	{                                                                                                              \
		return call;                                                                                           \
	}

DG_LIST(vfprintf, (FILE *f, const char *format, va_list list), dg_list_vfprintf(DG_OF(f), f, format, list))
DG_LIST(vprintf, (const char *format, va_list list), dg_list_vfprintf(DG_OF(stdout), stdout, format, list))
DG_LIST(__vfprintf_chk, (FILE *f, int flag, const char *format, va_list list),
	dg_list___vfprintf_chk(DG_OF(f), f, flag, format, list))
DG_LIST(__vprintf_chk, (int flag, const char *format, va_list list),
	dg_list___vfprintf_chk(DG_OF(stdout), stdout, flag, format, list))
DG_LIST(vfscanf, (FILE *f, const char *format, va_list list), dg_list_vfscanf(DG_OF(f), f, format, list))
DG_LIST(vscanf, (const char *format, va_list list), dg_list_vfscanf(DG_OF(stdin), stdin, format, list))
DG_LIST(__isoc99_vfscanf, (FILE *f, const char *format, va_list list),
	dg_list___isoc99_vfscanf(DG_OF(f), f, format, list))
DG_LIST(__isoc99_vscanf, (const char *format, va_list list), dg_list___isoc99_vfscanf(DG_OF(stdin), stdin, format, list))
DG_LIST(vfwprintf, (FILE *f, const wchar_t *format, va_list list), dg_list_vfwprintf(DG_OF(f), f, format, list))
DG_LIST(vwprintf, (const wchar_t *format, va_list list), dg_list_vfwprintf(DG_OF(stdout), stdout, format, list))

#define DG_VARIADIC(name, params, last, call)                                                                          \
	DG_WRAP_ONLY(int, name, params)                                                                                \
	{                                                                                                              \
		va_list list;                                                                                          \
		int result;                                                                                            \
                                                                                                                       \
		va_start(list, last);                                                                                  \
		result = call;                                                                                         \
		va_end(list);                                                                                          \
		return result;                                                                                         \
	}

DG_VARIADIC(printf, (const char *format, ...), format, dg_list_vfprintf(DG_OF(stdout), stdout, format, list))
DG_VARIADIC(fprintf, (FILE *f, const char *format, ...), format, dg_list_vfprintf(DG_OF(f), f, format, list))
DG_VARIADIC(__printf_chk, (int flag, const char *format, ...), format,
	    dg_list___vfprintf_chk(DG_OF(stdout), stdout, flag, format, list))
DG_VARIADIC(__fprintf_chk, (FILE *f, int flag, const char *format, ...), format,
	    dg_list___vfprintf_chk(DG_OF(f), f, flag, format, list))
DG_VARIADIC(scanf, (const char *format, ...), format, dg_list_vfscanf(DG_OF(stdin), stdin, format, list))
DG_VARIADIC(fscanf, (FILE *f, const char *format, ...), format, dg_list_vfscanf(DG_OF(f), f, format, list))
DG_VARIADIC(__isoc99_scanf, (const char *format, ...), format,
	    dg_list___isoc99_vfscanf(DG_OF(stdin), stdin, format, list))
DG_VARIADIC(__isoc99_fscanf, (FILE *f, const char *format, ...), format,
	    dg_list___isoc99_vfscanf(DG_OF(f), f, format, list))
DG_VARIADIC(wprintf, (const wchar_t *format, ...), format, dg_list_vfwprintf(DG_OF(stdout), stdout, format, list))
DG_VARIADIC(fwprintf, (FILE *f, const wchar_t *format, ...), format, dg_list_vfwprintf(DG_OF(f), f, format, list))

DG_FILE_VOID(vwarn, (const char *format, va_list list), (format, list), stderr)
DG_FILE_VOID(vwarnx, (const char *format, va_list list), (format, list), stderr)

/* The program's own use of the lock. */
DG_EXPORT void flockfile(FILE *f)
{
	if (!dg_orders())
		DG_CALL(flockfile)(f);
	else
		dg_file_lock(f, DG_CALLER());
}

DG_EXPORT void funlockfile(FILE *f)
{
	if (!dg_orders())
		DG_CALL(funlockfile)(f);
	else
		dg_file_unlock(f);
}

/* As recorded, whoever has it. */
DG_EXPORT int ftrylockfile(FILE *f)
{
	int result = 0;

	if (!dg_orders())
		return DG_CALL(ftrylockfile)(f);
	if (dg_mode == DG_MODE_RECORD)
		result = DG_CALL(ftrylockfile)(f);
	result = (int)dg_engine(DG_OP_VALUE, (long)f, 0, result, DG_CALLER(), 0);
	if (dg_mode == DG_MODE_REPLAY && !result)
		DG_CALL(ftrylockfile)(f);
	return result;
}

/* ---- the list of all FILEs: into it before the file is opened, out of it
 * before the rest is written. Either may wait for another thread that wants
 * the list as well, so it is free again at the next system call, or after the
 * call if that makes none. ---- */

static DG_COLD void dg_files_enter(long site)
{
	dg_engine(DG_OP_ORDER_BEGIN, DG_FAMILY_FILES, DG_FAMILY_FILES, DG_ORDER_GATE, site, 0);
}

static DG_COLD void dg_files_left(void)
{
	dg_engine(DG_OP_ORDER_END, DG_FAMILY_FILES, DG_ORDER_GATE, 0, 0, 0);
}

#define DG_FILES(type, name, params, args)                                                                             \
	DG_WRAP(type, name, params)                                                                                    \
	{                                                                                                              \
		type result;                                                                                           \
                                                                                                                       \
		if (!dg_orders())                                                                                      \
			return DG_CALL(name) args;                                                                     \
		dg_files_enter(DG_CALLER());                                                                           \
		result = DG_CALL(name) args;                                                                           \
		dg_files_left();                                                                                       \
		return result;                                                                                         \
	}

DG_FILES(FILE *, fopen, (const char *path, const char *mode), (path, mode))
DG_FILES(FILE *, fopen64, (const char *path, const char *mode), (path, mode))
DG_FILES(FILE *, freopen, (const char *path, const char *mode, FILE *f), (path, mode, f))
DG_FILES(FILE *, freopen64, (const char *path, const char *mode, FILE *f), (path, mode, f))
DG_FILES(FILE *, fdopen, (int fd, const char *mode), (fd, mode))
DG_FILES(FILE *, fmemopen, (void *at, size_t size, const char *mode), (at, size, mode))
DG_FILES(FILE *, open_memstream, (char **at, size_t *size), (at, size))
DG_FILES(FILE *, open_wmemstream, (wchar_t **at, size_t *size), (at, size))
DG_FILES(FILE *, fopencookie, (void *cookie, const char *mode, cookie_io_functions_t functions), (cookie, mode, functions))
DG_FILES(FILE *, tmpfile, (void), ())
DG_FILES(FILE *, tmpfile64, (void), ())
DG_FILES(FILE *, popen, (const char *command, const char *mode), (command, mode))
DG_FILES(int, pclose, (FILE *f), (f))
DG_FILES(int, fcloseall, (void), ())

DG_NEXT(int, fclose, (FILE *));
DG_NEXT(int, fflush, (FILE *));

DG_EXPORT int fclose(FILE *f)
{
	int result;

	if (!dg_orders())
		return DG_CALL(fclose)(f);
	/* After the threads that still use it. */
	dg_file_lock(f, DG_CALLER());
	dg_file_unlock(f);
	dg_files_enter(DG_CALLER());
	result = DG_CALL(fclose)(f);
	dg_files_left();
	return result;
}

/* glibc's, not in its headers any more. */
extern FILE *_IO_list_all;
extern void _IO_list_lock(void);
extern void _IO_list_unlock(void);
extern int __overflow(FILE *, int);

static int dg_flush(FILE *f, long site)
{
	struct dg_ordered o = { .file = f, .site = site };
	int result;

	dg_order_enter(&o);
	result = DG_CALL(fflush)(f);
	dg_order_left(&o);
	return result;
}

static bool dg_flush_due(const FILE *f)
{
	/* Of wide characters, struct _IO_wide_data: pointers as a FILE's own. */
	wchar_t *const *wide = (wchar_t *const *)(const void *)f->_wide_data;

	if (f->_mode <= 0)
		return f->_IO_write_ptr > f->_IO_write_base;
	return wide[4] > wide[3];
}

static int dg_flush_written(FILE *f, long site)
{
	struct dg_ordered o = { .file = f, .site = site };
	int result;

	dg_order_enter(&o);
	result = dg_flush_due(f) && __overflow(f, EOF) == EOF ? EOF : 0;
	dg_order_left(&o);
	return result;
}

static DG_COLD void dg_list_leave(void *unused)
{
	(void)unused;
	_IO_list_unlock();
}

/* As _IO_flush_all of glibc, which takes the lock of each FILE, and no event
 * would say when: what others write meanwhile would be flushed as well, or
 * not. */
static DG_COLD int dg_flush_all(long site)
{
	struct dg_ordered o = { .family = DG_FAMILY_FILES, .site = site };
	struct _pthread_cleanup_buffer cleanup;
	int result = 0;

	dg_order_enter(&o);
	_IO_list_lock();
	_pthread_cleanup_push(&cleanup, dg_list_leave, NULL);
	for (FILE *f = _IO_list_all; f; f = f->_chain)
		if (dg_flush_written(f, site))
			result = EOF;
	_pthread_cleanup_pop(&cleanup, 1);
	dg_order_left(&o);
	return result;
}

DG_EXPORT int fflush(FILE *f)
{
	if (!dg_orders())
		return DG_CALL(fflush)(f);
	return f ? dg_flush(f, DG_CALLER()) : dg_flush_all(DG_CALLER());
}
