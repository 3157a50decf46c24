/* Calls about state that libc keeps one of, for all threads: see wrap/order.c.
 * While one thread is in a call of a family the others wait. */
#include "agent.h"
#include "engine/thread.h"
#include "wrap/next.h"

#include <dlfcn.h>
#include <iconv.h>
#include <locale.h>
#include <netdb.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define DG_FAMILY(type, name, params, args, family_)                                                                   \
	DG_WRAP(type, name, params)                                                                                    \
	{                                                                                                              \
		struct dg_ordered o;                                                                                   \
		type result;                                                                                           \
                                                                                                                       \
		if (!dg_orders())                                                                                      \
			return DG_CALL(name) args;                                                                     \
		o = (struct dg_ordered){ .family = (family_), .site = DG_CALLER() };                                   \
		dg_order_enter(&o);                                                                                    \
		result = DG_CALL(name) args;                                                                           \
		dg_order_left(&o);                                                                                     \
		return result;                                                                                         \
	}

#define DG_FAMILY_VOID(name, params, args, family_)                                                                    \
	DG_WRAP(void, name, params)                                                                                    \
	{                                                                                                              \
		struct dg_ordered o;                                                                                   \
                                                                                                                       \
		if (!dg_orders()) {                                                                                    \
			DG_CALL(name) args;                                                                            \
			return;                                                                                        \
		}                                                                                                      \
		o = (struct dg_ordered){ .family = (family_), .site = DG_CALLER() };                                   \
		dg_order_enter(&o);                                                                                    \
		DG_CALL(name) args;                                                                                    \
		dg_order_left(&o);                                                                                     \
	}

/* ---- numbers ---- */

DG_FAMILY(int, rand, (void), (), DG_FAMILY_RANDOM)
DG_FAMILY_VOID(srand, (unsigned seed), (seed), DG_FAMILY_RANDOM)
DG_FAMILY(long, random, (void), (), DG_FAMILY_RANDOM)
DG_FAMILY_VOID(srandom, (unsigned seed), (seed), DG_FAMILY_RANDOM)
DG_FAMILY(char *, initstate, (unsigned seed, char *state, size_t n), (seed, state, n), DG_FAMILY_RANDOM)
DG_FAMILY(char *, setstate, (char *state), (state), DG_FAMILY_RANDOM)
DG_FAMILY(double, drand48, (void), (), DG_FAMILY_RANDOM)
DG_FAMILY(long, lrand48, (void), (), DG_FAMILY_RANDOM)
DG_FAMILY(long, mrand48, (void), (), DG_FAMILY_RANDOM)
DG_FAMILY_VOID(srand48, (long seed), (seed), DG_FAMILY_RANDOM)
DG_FAMILY(unsigned short *, seed48, (unsigned short *seed), (seed), DG_FAMILY_RANDOM)
DG_FAMILY_VOID(lcong48, (unsigned short *parameters), (parameters), DG_FAMILY_RANDOM)

/* ---- time zones ---- */

DG_FAMILY(struct tm *, localtime, (const time_t *t), (t), DG_FAMILY_TIME)
DG_FAMILY(struct tm *, localtime_r, (const time_t *t, struct tm *to), (t, to), DG_FAMILY_TIME)
DG_FAMILY(struct tm *, gmtime, (const time_t *t), (t), DG_FAMILY_TIME)
DG_FAMILY(struct tm *, gmtime_r, (const time_t *t, struct tm *to), (t, to), DG_FAMILY_TIME)
DG_FAMILY(time_t, mktime, (struct tm *t), (t), DG_FAMILY_TIME)
DG_FAMILY(time_t, timelocal, (struct tm *t), (t), DG_FAMILY_TIME)
DG_FAMILY(time_t, timegm, (struct tm *t), (t), DG_FAMILY_TIME)
DG_FAMILY(char *, ctime, (const time_t *t), (t), DG_FAMILY_TIME)
DG_FAMILY(char *, ctime_r, (const time_t *t, char *to), (t, to), DG_FAMILY_TIME)
DG_FAMILY(char *, asctime, (const struct tm *t), (t), DG_FAMILY_TIME)
DG_FAMILY_VOID(tzset, (void), (), DG_FAMILY_TIME)
DG_FAMILY(size_t, strftime, (char *to, size_t n, const char *format, const struct tm *t), (to, n, format, t),
	  DG_FAMILY_TIME)
DG_FAMILY(size_t, strftime_l, (char *to, size_t n, const char *format, const struct tm *t, locale_t locale),
	  (to, n, format, t, locale), DG_FAMILY_TIME)
DG_FAMILY(size_t, wcsftime, (wchar_t *to, size_t n, const wchar_t *format, const struct tm *t), (to, n, format, t),
	  DG_FAMILY_TIME)

/* ---- locales, conversions, messages ---- */

DG_FAMILY(char *, setlocale, (int category, const char *name), (category, name), DG_FAMILY_LOCALE)
DG_FAMILY(locale_t, newlocale, (int mask, const char *name, locale_t base), (mask, name, base), DG_FAMILY_LOCALE)
DG_FAMILY(locale_t, duplocale, (locale_t locale), (locale), DG_FAMILY_LOCALE)
DG_FAMILY_VOID(freelocale, (locale_t locale), (locale), DG_FAMILY_LOCALE)
DG_FAMILY(iconv_t, iconv_open, (const char *to, const char *from), (to, from), DG_FAMILY_LOCALE)
DG_FAMILY(int, iconv_close, (iconv_t conversion), (conversion), DG_FAMILY_LOCALE)
DG_FAMILY(char *, gettext, (const char *text), (text), DG_FAMILY_TEXT)
DG_FAMILY(char *, dgettext, (const char *domain, const char *text), (domain, text), DG_FAMILY_TEXT)
DG_FAMILY(char *, dcgettext, (const char *domain, const char *text, int category), (domain, text, category), DG_FAMILY_TEXT)
DG_FAMILY(char *, ngettext, (const char *one, const char *many, unsigned long n), (one, many, n), DG_FAMILY_TEXT)
DG_FAMILY(char *, dngettext, (const char *domain, const char *one, const char *many, unsigned long n),
	  (domain, one, many, n), DG_FAMILY_TEXT)
DG_FAMILY(char *, dcngettext, (const char *domain, const char *one, const char *many, unsigned long n, int category),
	  (domain, one, many, n, category), DG_FAMILY_TEXT)
DG_FAMILY(char *, textdomain, (const char *domain), (domain), DG_FAMILY_TEXT)
DG_FAMILY(char *, bindtextdomain, (const char *domain, const char *path), (domain, path), DG_FAMILY_TEXT)

/* ---- the environment ---- */

DG_FAMILY(char *, getenv, (const char *name), (name), DG_FAMILY_ENVIRONMENT)
DG_FAMILY(char *, secure_getenv, (const char *name), (name), DG_FAMILY_ENVIRONMENT)
DG_FAMILY(int, setenv, (const char *name, const char *value, int replace), (name, value, replace), DG_FAMILY_ENVIRONMENT)
DG_FAMILY(int, unsetenv, (const char *name), (name), DG_FAMILY_ENVIRONMENT)
DG_FAMILY(int, putenv, (char *entry), (entry), DG_FAMILY_ENVIRONMENT)
DG_FAMILY(int, clearenv, (void), (), DG_FAMILY_ENVIRONMENT)

/* ---- names of users, hosts, services ---- */

DG_FAMILY(int, getaddrinfo,
	  (const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **to),
	  (node, service, hints, to), DG_FAMILY_NAMES)
DG_FAMILY(int, getnameinfo,
	  (const struct sockaddr *address, socklen_t n, char *host, socklen_t hosts, char *service, socklen_t services,
	   int flags),
	  (address, n, host, hosts, service, services, flags), DG_FAMILY_NAMES)
DG_FAMILY(struct hostent *, gethostbyname, (const char *name), (name), DG_FAMILY_NAMES)
DG_FAMILY(struct hostent *, gethostbyname2, (const char *name, int family), (name, family), DG_FAMILY_NAMES)
DG_FAMILY(struct hostent *, gethostbyaddr, (const void *address, socklen_t n, int type), (address, n, type), DG_FAMILY_NAMES)
DG_FAMILY(int, gethostbyname_r,
	  (const char *name, struct hostent *h, char *buffer, size_t n, struct hostent **to, int *error),
	  (name, h, buffer, n, to, error), DG_FAMILY_NAMES)
DG_FAMILY(int, gethostbyname2_r,
	  (const char *name, int family, struct hostent *h, char *buffer, size_t n, struct hostent **to, int *error),
	  (name, family, h, buffer, n, to, error), DG_FAMILY_NAMES)
DG_FAMILY(int, gethostbyaddr_r,
	  (const void *address, socklen_t length, int type, struct hostent *h, char *buffer, size_t n,
	   struct hostent **to, int *error),
	  (address, length, type, h, buffer, n, to, error), DG_FAMILY_NAMES)
DG_FAMILY(struct servent *, getservbyname, (const char *name, const char *protocol), (name, protocol), DG_FAMILY_NAMES)
DG_FAMILY(struct servent *, getservbyport, (int port, const char *protocol), (port, protocol), DG_FAMILY_NAMES)
DG_FAMILY(struct protoent *, getprotobyname, (const char *name), (name), DG_FAMILY_NAMES)
DG_FAMILY(struct passwd *, getpwnam, (const char *name), (name), DG_FAMILY_NAMES)
DG_FAMILY(struct passwd *, getpwuid, (uid_t uid), (uid), DG_FAMILY_NAMES)
DG_FAMILY(int, getpwnam_r, (const char *name, struct passwd *p, char *buffer, size_t n, struct passwd **to),
	  (name, p, buffer, n, to), DG_FAMILY_NAMES)
DG_FAMILY(int, getpwuid_r, (uid_t uid, struct passwd *p, char *buffer, size_t n, struct passwd **to),
	  (uid, p, buffer, n, to), DG_FAMILY_NAMES)
DG_FAMILY(struct group *, getgrnam, (const char *name), (name), DG_FAMILY_NAMES)
DG_FAMILY(struct group *, getgrgid, (gid_t gid), (gid), DG_FAMILY_NAMES)
DG_FAMILY(int, getgrnam_r, (const char *name, struct group *g, char *buffer, size_t n, struct group **to),
	  (name, g, buffer, n, to), DG_FAMILY_NAMES)
DG_FAMILY(int, getgrgid_r, (gid_t gid, struct group *g, char *buffer, size_t n, struct group **to),
	  (gid, g, buffer, n, to), DG_FAMILY_NAMES)
DG_FAMILY(int, initgroups, (const char *user, gid_t gid), (user, gid), DG_FAMILY_NAMES)
DG_FAMILY(int, getgrouplist, (const char *user, gid_t gid, gid_t *groups, int *n), (user, gid, groups, n), DG_FAMILY_NAMES)

/* ---- syslog ---- */

DG_FAMILY_VOID(openlog, (const char *name, int options, int facility), (name, options, facility), DG_FAMILY_LOG)
DG_FAMILY_VOID(closelog, (void), (), DG_FAMILY_LOG)
DG_FAMILY(int, setlogmask, (int mask), (mask), DG_FAMILY_LOG)
DG_FAMILY_VOID(vsyslog, (int priority, const char *format, va_list list), (priority, format, list), DG_FAMILY_LOG)
DG_FAMILY_VOID(__vsyslog_chk, (int priority, int flag, const char *format, va_list list), (priority, flag, format, list),
	       DG_FAMILY_LOG)

DG_WRAP_ONLY(void, syslog, (int priority, const char *format, ...))
{
	va_list list;

	va_start(list, format);
	dg_wrap_vsyslog(priority, format, list);
	va_end(list);
}

DG_WRAP_ONLY(void, __syslog_chk, (int priority, int flag, const char *format, ...))
{
	va_list list;

	va_start(list, format);
	dg_wrap___vsyslog_chk(priority, flag, format, list);
	va_end(list);
}

/* ---- fork ---- */

/* A thread that waits for the lock of the fork handlers leaves other bytes on its stack
 * than who does not, and these lie in frames where a signal finds them. */
DG_FAMILY(pid_t, fork, (void), (), DG_FAMILY_FORK)
DG_FAMILY(pid_t, __fork, (void), (), DG_FAMILY_FORK)

/* ---- what runs at the end; thread-specific keys ---- */

DG_FAMILY(int, __cxa_atexit, (void (*function)(void *), void *argument, void *object), (function, argument, object),
	  DG_FAMILY_EXIT)
DG_FAMILY(int, __cxa_at_quick_exit, (void (*function)(void *), void *object), (function, object), DG_FAMILY_EXIT)
DG_FAMILY(int, on_exit, (void (*function)(int, void *), void *argument), (function, argument), DG_FAMILY_EXIT)
DG_FAMILY(int, __register_atfork, (void (*prepare)(void), void (*parent)(void), void (*child)(void), void *object),
	  (prepare, parent, child, object), DG_FAMILY_EXIT)
DG_FAMILY(int, pthread_key_create, (pthread_key_t *key, void (*destroy)(void *)), (key, destroy), DG_FAMILY_KEYS)
DG_FAMILY(int, __pthread_key_create, (pthread_key_t *key, void (*destroy)(void *)), (key, destroy), DG_FAMILY_KEYS)
DG_FAMILY(int, pthread_key_delete, (pthread_key_t key), (key), DG_FAMILY_KEYS)
DG_FAMILY(int, tss_create, (tss_t *key, tss_dtor_t destroy), (key, destroy), DG_FAMILY_KEYS)
DG_FAMILY_VOID(tss_delete, (tss_t key), (key), DG_FAMILY_KEYS)
