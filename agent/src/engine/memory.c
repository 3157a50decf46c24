/* Calls that change the address space. They are made under one lock, and have
 * their ticket from while it is held, so that a replay makes them in an order in
 * which each finds what it found: at the same addresses, with the same bytes. */
#include "engine/engine.h"
#include "engine/table.h"
#include "syscall.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>

#define DG_DATA_MOST (4ull << 30) /* bytes of mapped files that a recording keeps */
#define DG_SEGMENTS_MOST 64u
#define DG_INSTALLED_LEAST (64ll << 10) /* smaller files are kept as they are */

static struct dg_event *dg_call_begin(const struct dg_call *c, uint64_t payload_bytes);
static void dg_call_done(struct dg_event *e, long result);
static const struct dg_event *dg_call_await(struct dg_frame *f, const struct dg_call *c);
static void dg_limit(enum dg_limit limit, uint64_t site, const char *text, const struct dg_call *c);

static uint32_t dg_memory_word; /* 0 free, 1 taken, 2 taken and waited for */

static void dg_memory_lock(void)
{
	uint32_t free = 0;

	if (__atomic_compare_exchange_n(&dg_memory_word, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(&dg_memory_word, 2, __ATOMIC_ACQUIRE))
		dg_sys4(SYS_futex, &dg_memory_word, FUTEX_WAIT_PRIVATE, 2, 0);
}

static void dg_memory_unlock(void)
{
	dg_mappings_changed++;
	if (__atomic_exchange_n(&dg_memory_word, 0, __ATOMIC_RELEASE) == 2)
		dg_sys3(SYS_futex, &dg_memory_word, FUTEX_WAKE_PRIVATE, 1);
}

/* Recording: there is memory that a child will share. */
static bool dg_memory_shared;

static uint64_t dg_pages(uint64_t bytes)
{
	return (bytes + DG_PAGE_BYTES - 1) & ~(DG_PAGE_BYTES - 1);
}

/* System V segments that are attached: a replay must know how long they are
 * when they are detached. */
static struct dg_segment_at {
	uint64_t address, size;
} dg_attached[DG_SEGMENTS_MOST];

static void dg_attach_note(uint64_t address, uint64_t size)
{
	for (uint32_t i = 0; i < DG_SEGMENTS_MOST; i++)
		if (!dg_attached[i].address) {
			dg_attached[i] = (struct dg_segment_at){ address, size };
			return;
		}
}

static uint64_t dg_attach_forget(uint64_t address)
{
	for (uint32_t i = 0; i < DG_SEGMENTS_MOST; i++)
		if (dg_attached[i].address == address) {
			dg_attached[i].address = 0;
			return dg_attached[i].size;
		}
	return 0;
}

/* ---- What a mapped file has ---- */

/* "/proc/self/fd/" and the number. */
static long dg_path_of(int fd, char *path, uint64_t size)
{
	char link[32] = "/proc/self/fd/", digits[12];
	uint32_t at = 14, n = 0;
	long length;

	do
		digits[n++] = (char)('0' + fd % 10);
	while ((fd /= 10) > 0);
	while (n)
		link[at++] = digits[--n];
	link[at] = 0;
	length = dg_sys3(SYS_readlink, link, path, size - 1);
	if (length <= 0 || (uint64_t)length >= size - 1)
		return -1;
	path[length] = 0;
	return length;
}

static bool dg_is_object(int fd, uint64_t prot)
{
	uint32_t magic = 0;

	if (prot & PROT_EXEC)
		return true;
	return dg_sys4(SYS_pread64, fd, &magic, sizeof(magic), 0) == sizeof(magic) && magic == 0x464c457f;
}

static bool dg_starts_with(const char *text, const char *with)
{
	while (*with)
		if (*text++ != *with++)
			return false;
	return true;
}

/* A file that only an installation changes: it is below /usr, which holds data that
 * programs do not write (Filesystem Hierarchy Standard 3.0, 4.1), root alone may
 * write it, and it was opened to be read. Such files are large (a JDK has 128 MB of
 * classes in one) and are known again by size and time, as objects are. */
static bool dg_is_installed(const char *path, int fd, const struct stat *st)
{
	long flags = dg_sys2(SYS_fcntl, fd, F_GETFL);

	return dg_starts_with(path, "/usr/") && st->st_uid == 0 && !(st->st_mode & (S_IWGRP | S_IWOTH)) && st->st_size >= DG_INSTALLED_LEAST &&
	       !dg_failed(flags) && (flags & O_ACCMODE) == O_RDONLY;
}

/* The file `data` is made when there is something for it: most processes that forks
 * make have nothing. It is in the log's directory, whatever that is called by now. */
static void dg_data_make(struct dg_control *c)
{
	static const char log[] = "log";
	char path[sizeof(c->log_path)];
	long length, fd;

	if (c->data_fd >= 0)
		return;
	length = dg_path_of(c->log_fd, path, sizeof(path));
	if (length < (long)sizeof(log) || length + 1 >= (long)sizeof(path) || !dg_same(path + length - 3, log))
		return;
	dg_copy(path + length - 3, "data", 5);
	fd = dg_sys4(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	dg_sys2(SYS_fchmod, fd, 0600); /* the program's mask of modes is not for it */
	__atomic_store_n(&c->data_fd, dg_fd_high(fd), __ATOMIC_RELEASE);
}

/* One thread at a time: dg_fd_high changes a limit of the process, and changes it back. */
static void dg_data_open(void)
{
	struct dg_control *c = DG_CONTROL;

	if (__atomic_load_n(&c->data_fd, __ATOMIC_ACQUIRE) >= 0 || c->log_fd < 0)
		return;
	dg_memory_lock();
	dg_data_make(c);
	dg_memory_unlock();
}

/* Room in `data`, or UINT64_MAX. */
static uint64_t dg_data_room(uint64_t length)
{
	struct dg_control *c = DG_CONTROL;
	uint64_t at;

	dg_data_open();
	if (c->data_fd < 0 || __atomic_load_n(&c->stopped, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&c->data_end, __ATOMIC_RELAXED) + length > DG_DATA_MOST)
		return UINT64_MAX;
	at = __atomic_fetch_add(&c->data_end, dg_pages(length), __ATOMIC_RELAXED);
	return at;
}

static bool dg_data_write(uint64_t at, const void *from, uint64_t length)
{
	const uint8_t *p = from;

	while (length) {
		long n = dg_sys4(SYS_pwrite64, DG_CONTROL->data_fd, p, length, at);

		if (n == -4 /* EINTR */)
			continue;
		if (n <= 0)
			return false;
		p += n;
		at += (uint64_t)n;
		length -= (uint64_t)n;
	}
	return true;
}

/* As far as the kernel copies by itself, or shares the blocks: whole pages. */
static uint64_t dg_data_copy(int fd, uint64_t from, uint64_t to, uint64_t length)
{
	uint64_t start = from;

	while (length) {
		long n = dg_sys(SYS_copy_file_range, fd, (long)&from, DG_CONTROL->data_fd, (long)&to, (long)length, 0);

		if (n == -4 /* EINTR */)
			continue;
		if (n <= 0)
			break;
		length -= (uint64_t)n;
	}
	return length ? (from - start) & ~(DG_PAGE_BYTES - 1) : from - start;
}

/* By way of mappings of the engine's own, since the program's may not be
 * readable, and a file may become shorter: then the kernel refuses to write
 * the missing pages, where reading them here would be SIGBUS. */
static void dg_data_keep(struct dg_mapped *m, int fd, uint64_t offset, uint64_t length)
{
	uint64_t window = dg_copy_window(dg_me), at, done = 0;

	if (offset >= m->size)
		length = 0;
	else if (length > m->size - offset)
		length = m->size - offset;
	at = dg_data_room(length);
	if (at == UINT64_MAX)
		return;
	done = dg_data_copy(fd, offset, at, length);
	while (done < length) {
		uint64_t piece = length - done < DG_COPY_WINDOW ? length - done : DG_COPY_WINDOW;
		long got = dg_sys(SYS_mmap, (long)window, (long)piece, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd,
				  (long)(offset + done));

		if (dg_failed(got) || !dg_data_write(at + done, (const void *)window, piece))
			break;
		done += piece;
	}
	dg_sys2(SYS_munmap, window, DG_COPY_WINDOW);
	if (done < length)
		return;
	m->data = at;
	m->length = length;
}

static void dg_mapped_file(struct dg_mapped *m, const struct dg_call *c)
{
	int fd = (int)c->args[4];
	struct stat st = { .st_ino = 0 }, by_path;
	bool path;

	*m = (struct dg_mapped){ .data = UINT64_MAX };
	if (dg_failed(dg_sys2(SYS_fstat, fd, &st)))
		return;
	m->device = st.st_dev;
	m->inode = st.st_ino;
	m->size = (uint64_t)st.st_size;
	m->mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000ull + (uint64_t)st.st_mtim.tv_nsec;
	path = dg_path_of(fd, m->path, sizeof(m->path)) > 0;
	if (!S_ISREG(st.st_mode)) {
		m->data = m->length = 0;
		return;
	}
	if (path && (dg_is_object(fd, c->args[2]) || dg_is_installed(m->path, fd, &st)) && !dg_failed(dg_sys2(SYS_stat, m->path, &by_path)) &&
	    by_path.st_dev == st.st_dev && by_path.st_ino == st.st_ino)
		return;
	/* The last page is there as a whole. */
	dg_data_keep(m, fd, c->args[5], dg_pages(c->args[1]));
}

/* ---- Recording ---- */

static long dg_memory_make(const struct dg_call *c)
{
	const uint64_t *a = c->args;

	if (c->nr == SYS_madvise && (a[2] == MADV_DONTFORK || a[2] == MADV_WIPEONFORK))
		DG_CONTROL->fork_advice = DG_FORK_ADVISED;
	/* The kernel would clear the pages when it pleases. */
	if (c->nr == SYS_madvise && a[2] == MADV_FREE)
		return dg_sys3(SYS_madvise, a[0], a[1], MADV_DONTNEED);
	return dg_sys(c->nr, (long)a[0], (long)a[1], (long)a[2], (long)a[3], (long)a[4], (long)a[5]);
}

static void dg_attach_record(struct dg_mapped *m, const struct dg_call *c, uint64_t address)
{
	struct shmid_ds info;

	*m = (struct dg_mapped){ .data = UINT64_MAX, .path = "System V shared memory" };
	if (dg_failed(dg_sys3(SYS_shmctl, c->args[0], IPC_STAT, &info)))
		return;
	m->size = info.shm_segsz;
	dg_attach_note(address, dg_pages(m->size));
	m->data = dg_data_room(m->size);
	if (m->data != UINT64_MAX && dg_data_write(m->data, (const void *)address, m->size))
		m->length = m->size;
	else
		m->data = UINT64_MAX;
}

/* The mapping is memory that other processes write; NULL: it is not. */
static const char *dg_shared_with_others(const struct dg_call *c, const struct dg_mapped *m)
{
	if (c->nr == SYS_shmat)
		return "System V shared memory: what other processes write there is not recorded";
	if (c->args[3] & MAP_SHARED && dg_starts_with(m->path, "/dev/shm/"))
		return "shared memory: what other processes write there is not recorded";
	return NULL;
}

/* An object's code is known; other code was never looked at. */
static void dg_counter_code(const struct dg_call *c)
{
	bool made = c->nr == SYS_mmap ? c->args[3] & MAP_ANONYMOUS : c->nr == SYS_mprotect || c->nr == SYS_pkey_mprotect;

	if (made && (c->args[2] & PROT_EXEC))
		dg_counter_trap();
	if (dg_counter_traps != dg_me->counter_traps)
		dg_counter_follow();
}

static void dg_memory_record(struct dg_frame *f, const struct dg_call *c)
{
	struct dg_mapped m;
	struct dg_event *e;
	uint64_t ticket;
	bool file;
	long result;

	dg_counter_code(c);
	dg_memory_lock();
	result = dg_memory_make(c);
	ticket = dg_ticket();
	if (c->nr == SYS_shmdt && !result)
		dg_attach_forget(c->args[0]);
	dg_memory_unlock();
	f->rax = (uint64_t)result;
	file = !dg_failed(result) &&
	       (c->nr == SYS_shmat || (c->nr == SYS_mmap && !(c->args[3] & MAP_ANONYMOUS)));
	if (file && c->nr == SYS_mmap)
		dg_mapped_file(&m, c);
	else if (file)
		dg_attach_record(&m, c, (uint64_t)result);
	if (c->nr == SYS_mmap && !dg_failed(result) && c->args[3] & MAP_SHARED && c->args[3] & MAP_ANONYMOUS)
		dg_memory_shared = true;
	e = dg_call_begin(c, file ? sizeof(struct dg_payload) + sizeof(m) : 0);
	if (!e)
		return;
	e->ticket = ticket;
	if (file)
		dg_event_payload(e, DG_PAYLOAD_FILE, (uint64_t)result, &m, sizeof(m));
	dg_call_done(e, result);
	/* An event of its own, whose ticket must come after this one's. */
	if (file && dg_shared_with_others(c, &m))
		dg_limit(DG_LIMIT_SHARED, c->site, dg_shared_with_others(c, &m), NULL);
}

/* ---- Replay ---- */

/* What a mapping must have to appear where it was: a program that replaced
 * another mapping said so. */
static uint64_t dg_map_flags(uint64_t flags)
{
	uint64_t fixed = flags & MAP_FIXED && !(flags & MAP_FIXED_NOREPLACE) ? MAP_FIXED : MAP_FIXED_NOREPLACE;

	flags &= ~(uint64_t)(MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_32BIT | MAP_POPULATE | MAP_LOCKED | MAP_HUGETLB |
			     MAP_HUGE_MASK << MAP_HUGE_SHIFT);
	return flags | fixed;
}

static uint64_t dg_flags_private(uint64_t flags)
{
	return (dg_map_flags(flags) & ~(uint64_t)(MAP_TYPE | MAP_SYNC)) | MAP_PRIVATE;
}

static long dg_map_object(const struct dg_call *c, const struct dg_event *e, const struct dg_mapped *m)
{
	struct stat st = { .st_ino = 0 };
	int fd = (int)dg_sys3(SYS_open, m->path, O_RDONLY | O_CLOEXEC, 0);
	uint64_t mtime;
	long at;

	if (fd < 0)
		dg_diverge(DG_DIFFERS_MAPPING, e, 1, 0, (uint64_t)-fd);
	if (dg_failed(dg_sys2(SYS_fstat, fd, &st)) || (uint64_t)st.st_size != m->size)
		dg_diverge(DG_DIFFERS_MAPPING, e, 2, m->size, (uint64_t)st.st_size);
	mtime = (uint64_t)st.st_mtim.tv_sec * 1000000000ull + (uint64_t)st.st_mtim.tv_nsec;
	if (mtime != m->mtime_ns)
		dg_diverge(DG_DIFFERS_MAPPING, e, 3, m->mtime_ns, mtime);
	at = dg_sys(SYS_mmap, e->result, (long)c->args[1], (long)c->args[2], (long)dg_flags_private(c->args[3]), fd,
		    (long)c->args[5]);
	dg_sys1(SYS_close, fd);
	return at;
}

/* A mapping of `data` itself, so that what the program drops (MADV_DONTNEED)
 * returns as it did. After the file's end there is nothing to see. */
static long dg_map_kept(uint64_t address, uint64_t length, uint64_t prot, uint64_t flags, const struct dg_mapped *m)
{
	uint64_t kept = dg_pages(m->length);
	long at = (long)address;

	length = dg_pages(length);
	if (kept > length)
		kept = length;
	if (kept)
		at = dg_sys(SYS_mmap, (long)address, (long)kept, (long)prot, (long)dg_flags_private(flags),
			    DG_CONTROL->data_fd, (long)m->data);
	if (at != (long)address || kept == length)
		return at;
	at = dg_sys(SYS_mmap, (long)(address + kept), (long)(length - kept), (long)prot,
		    (long)(dg_flags_private(flags) | MAP_ANONYMOUS), -1, 0);
	return at == (long)(address + kept) ? (long)address : at;
}

/* Files that the program maps shared: one file in memory stands for each, so
 * that a write through one mapping is seen through another. */
#define DG_SHARED_FILES 64u
#define DG_SHARED_COPY (256ull << 20)

static struct dg_shared_file {
	uint64_t device, inode;
	int fd; /* plus one */
} dg_shared_files[DG_SHARED_FILES];

static struct dg_shared_file *dg_shared_file(const struct dg_mapped *m, bool make)
{
	struct dg_shared_file *free = NULL;
	long fd;

	for (uint32_t i = 0; i < DG_SHARED_FILES; i++) {
		struct dg_shared_file *s = dg_shared_files + i;

		if (s->fd && s->device == m->device && s->inode == m->inode)
			return s;
		if (!s->fd && !free)
			free = s;
	}
	if (!make || !free)
		return NULL;
	fd = dg_sys2(SYS_memfd_create, "diagnose", MFD_CLOEXEC);
	if (fd < 0)
		return NULL;
	*free = (struct dg_shared_file){ m->device, m->inode, (int)fd + 1 };
	return free;
}

/* The recorded bytes, by way of a mapping of them. */
static bool dg_shared_fill(int fd, const struct dg_mapped *m, uint64_t offset)
{
	uint64_t size = dg_pages(m->size > offset + m->length ? m->size : offset + m->length), done = 0;
	long at = 0;

	if (dg_failed(dg_sys2(SYS_ftruncate, fd, size)))
		return false;
	if (!m->length)
		return true;
	at = dg_sys(SYS_mmap, 0, (long)m->length, PROT_READ, MAP_PRIVATE, DG_CONTROL->data_fd, (long)m->data);
	if (dg_failed(at))
		return false;
	while (done < m->length) {
		long n = dg_sys4(SYS_pwrite64, fd, at + (long)done, m->length - done, offset + done);

		if (n <= 0)
			break;
		done += (uint64_t)n;
	}
	dg_sys2(SYS_munmap, at, m->length);
	return done == m->length;
}

/* 0: as a private mapping, then. */
static long dg_map_shared(const struct dg_call *c, const struct dg_event *e, const struct dg_mapped *m)
{
	bool shared = c->args[3] & MAP_SHARED && m->length <= DG_SHARED_COPY;
	struct dg_shared_file *s = dg_shared_file(m, shared);

	if (!s || !m->inode || !dg_shared_fill(s->fd - 1, m, c->args[5]))
		return 0;
	return dg_sys(SYS_mmap, e->result, (long)c->args[1], (long)c->args[2],
		      (long)(dg_map_flags(c->args[3]) & ~(uint64_t)MAP_SYNC), s->fd - 1, (long)c->args[5]);
}

static long dg_map_again(const struct dg_call *c, const struct dg_event *e)
{
	const struct dg_payload *p = dg_logged_payload(e, 0);
	const struct dg_mapped *m = p && p->kind == DG_PAYLOAD_FILE ? dg_payload_bytes(p) : NULL;
	long at;

	if (!m)
		return dg_sys(SYS_mmap, e->result, (long)c->args[1], (long)c->args[2], (long)dg_map_flags(c->args[3]), -1,
			      0);
	if (m->data == UINT64_MAX)
		return dg_map_object(c, e, m);
	at = dg_map_shared(c, e, m);
	if (at)
		return at;
	return dg_map_kept((uint64_t)e->result, c->args[1], c->args[2], c->args[3], m);
}

static long dg_move_again(const struct dg_call *c, const struct dg_event *e)
{
	uint64_t keep = c->args[3] & ~(uint64_t)(MREMAP_MAYMOVE | MREMAP_FIXED);
	long to = e->result;

	if (to == (long)c->args[0])
		return dg_sys(SYS_mremap, to, (long)c->args[1], (long)c->args[2], (long)keep, 0, 0);
	/* It replaces the mappings there: there may be none, unless the program said so. */
	if (!(c->args[3] & MREMAP_FIXED)) {
		long at = dg_sys(SYS_mmap, to, (long)c->args[2], PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);

		if (at != to)
			return at;
	}
	return dg_sys(SYS_mremap, (long)c->args[0], (long)c->args[1], (long)c->args[2],
		      (long)(keep | MREMAP_MAYMOVE | MREMAP_FIXED), to, 0);
}

static long dg_attach_again(const struct dg_call *c, const struct dg_event *e)
{
	const struct dg_payload *p = dg_logged_payload(e, 0);
	const struct dg_mapped *m = p ? dg_payload_bytes(p) : NULL;
	struct dg_mapped empty;

	if (!m)
		return -1;
	if (m->data == UINT64_MAX)
		empty = (struct dg_mapped){ .length = 0 };
	dg_attach_note((uint64_t)e->result, dg_pages(m->size));
	return dg_map_kept((uint64_t)e->result, m->size, PROT_READ | (c->args[2] & SHM_RDONLY ? 0 : PROT_WRITE),
			   c->args[2] & SHM_REMAP ? MAP_FIXED : 0, m->data == UINT64_MAX ? &empty : m);
}

/* Advice that the program could see the effect of. */
static bool dg_advice_counts(uint64_t advice)
{
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_FREE:
	case MADV_REMOVE:
	case MADV_DONTFORK:
	case MADV_DOFORK:
	case MADV_WIPEONFORK:
	case MADV_KEEPONFORK:
	case 24:  /* MADV_DONTNEED_LOCKED */
	case 102: /* MADV_GUARD_INSTALL */
	case 103: /* MADV_GUARD_REMOVE */
		return true;
	default:
		return false;
	}
}

static long dg_memory_again(const struct dg_call *c, const struct dg_event *e)
{
	switch (c->nr) {
	case SYS_mmap:
		return dg_map_again(c, e);
	case SYS_mremap:
		return dg_move_again(c, e);
	case SYS_shmat:
		return dg_attach_again(c, e);
	case SYS_shmdt:
		return dg_sys2(SYS_munmap, c->args[0], dg_attach_forget(c->args[0]));
	case SYS_madvise:
		if (!dg_advice_counts(c->args[2]))
			return e->result;
		return dg_memory_make(c);
	default:
		return dg_memory_make(c);
	}
}

static void dg_memory_replay(struct dg_frame *f, const struct dg_call *c)
{
	const struct dg_event *e = dg_call_await(f, c);
	long result;

	if (!e)
		return;
	dg_counter_code(c);
	f->rax = (uint64_t)e->result;
	if (dg_failed(e->result))
		return;
	result = dg_memory_again(c, e);
	if (result != e->result)
		dg_diverge(DG_DIFFERS_MAPPING, e, 0, (uint64_t)e->result, (uint64_t)result);
}
