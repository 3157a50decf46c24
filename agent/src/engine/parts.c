/* The memory that a call wrote or read, as its row says: a list of pieces, made
 * when the call was made, for only what the kernel has just used is safe to
 * look at. Lengths are bounded by the result and by what the program offered. */
#include "engine/engine.h"
#include "engine/table.h"
#include "syscall.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define DG_PIECES 1536u
#define DG_PATH_MOST 4096u
#define DG_NAME_MOST 128u /* struct sockaddr_storage */

struct dg_piece {
	uint64_t address;
	uint32_t length;
	uint32_t kind; /* enum dg_payload_kind */
};

struct dg_pieces {
	uint32_t count;
	bool out, in;   /* which are wanted */
	bool unknown;   /* an argument that the table does not know */
	uint32_t named; /* lengths that value-result arguments had before the call */
	uint64_t left_at, left[2]; /* the time that a sleep had left, before it: where, or 0, and what */
	struct dg_piece list[DG_PIECES];
};

static inline void dg_piece(struct dg_pieces *s, enum dg_payload_kind kind, uint64_t address, uint64_t length)
{
	if (!address || !length)
		return;
	if (s->count == DG_PIECES || length > UINT32_MAX / 2) {
		s->unknown = true;
		return;
	}
	s->list[s->count++] = (struct dg_piece){ address, (uint32_t)length, kind };
}

static inline void dg_piece_out(struct dg_pieces *s, uint64_t address, uint64_t length)
{
	if (s->out)
		dg_piece(s, DG_PAYLOAD_OUT, address, length);
}

static inline void dg_piece_in(struct dg_pieces *s, uint64_t address, uint64_t length)
{
	if (s->in)
		dg_piece(s, DG_PAYLOAD_DIGEST, address, length);
}

static inline uint64_t dg_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* At most `left` bytes over the vectors. */
static void dg_vector(struct dg_pieces *s, enum dg_payload_kind kind, uint64_t vectors, uint64_t count, uint64_t left)
{
	const struct iovec *v = (const struct iovec *)vectors;

	if (kind == DG_PAYLOAD_OUT ? !s->out : !s->in)
		return;
	for (; count && left; count--, v++) {
		uint64_t n = dg_least(v->iov_len, left);

		dg_piece(s, kind, (uint64_t)v->iov_base, n);
		left -= n;
	}
}

static void dg_text(struct dg_pieces *s, uint64_t text, long result)
{
	const char *p = (const char *)text;
	uint64_t n = 0;

	switch (result) {
	case -ENOENT:
	case -EEXIST:
	case -ENOTDIR:
	case -EACCES:
	case -EISDIR:
	case -ELOOP:
		break;
	default:
		if (dg_failed(result))
			return;
	}
	if (!p || !s->in)
		return;
	while (n < DG_PATH_MOST && p[n])
		n++;
	dg_piece(s, DG_PAYLOAD_TEXT, text, n);
}

static void dg_message_out(struct dg_pieces *s, const struct msghdr *m, uint64_t named, uint64_t bytes)
{
	dg_piece_out(s, (uint64_t)m->msg_name, dg_least(m->msg_namelen, named));
	dg_vector(s, DG_PAYLOAD_OUT, (uint64_t)m->msg_iov, m->msg_iovlen, bytes);
	dg_piece_out(s, (uint64_t)m->msg_control, m->msg_controllen);
}

static void dg_message_in(struct dg_pieces *s, const struct msghdr *m, uint64_t bytes)
{
	dg_piece_in(s, (uint64_t)m->msg_name, m->msg_namelen);
	dg_vector(s, DG_PAYLOAD_DIGEST, (uint64_t)m->msg_iov, m->msg_iovlen, bytes);
	dg_piece_in(s, (uint64_t)m->msg_control, m->msg_controllen);
}

static void dg_messages_out(struct dg_pieces *s, uint64_t headers, uint64_t count)
{
	const struct mmsghdr *m = (const struct mmsghdr *)headers;

	dg_piece_out(s, headers, count * sizeof(*m));
	for (; count; count--, m++)
		dg_message_out(s, &m->msg_hdr, DG_NAME_MOST, m->msg_len);
}

static void dg_messages_in(struct dg_pieces *s, uint64_t headers, uint64_t count)
{
	const struct mmsghdr *m = (const struct mmsghdr *)headers;

	for (; count; count--, m++)
		dg_message_in(s, &m->msg_hdr, m->msg_len);
}

static void dg_messages_sent(struct dg_pieces *s, uint64_t headers, uint64_t count)
{
	const struct mmsghdr *m = (const struct mmsghdr *)headers;

	for (; count; count--, m++)
		dg_piece_out(s, (uint64_t)&m->msg_len, sizeof(m->msg_len));
}

/* ---- calls with a command ---- */

/* Requests from before the scheme of _IOC, or that lie about themselves.
 * Sources: asm-generic/ioctls.h, linux/sockios.h, linux/fs.h. */
static const struct {
	uint32_t request, size; /* bytes that come out */
} dg_ioctls[] = {
	{ 0x5401, 36 }, { 0x5402, 0 }, { 0x5403, 0 }, { 0x5404, 0 }, { 0x5405, 18 }, { 0x5406, 0 }, { 0x5407, 0 },
	{ 0x5408, 0 }, { 0x5409, 0 }, { 0x540a, 0 }, { 0x540b, 0 }, { 0x540c, 0 }, { 0x540d, 0 }, { 0x540e, 0 },
	{ 0x540f, 4 }, { 0x5410, 0 }, { 0x5411, 4 }, { 0x5412, 0 }, { 0x5413, 8 }, { 0x5414, 0 }, { 0x5415, 4 },
	{ 0x5416, 0 }, { 0x5417, 0 }, { 0x5418, 0 }, { 0x5419, 4 }, { 0x541a, 0 }, { 0x541b, 4 }, { 0x541d, 0 },
	{ 0x541e, 72 }, { 0x5420, 0 }, { 0x5421, 0 }, { 0x5422, 0 }, { 0x5423, 0 }, { 0x5424, 4 }, { 0x5425, 0 },
	{ 0x5427, 0 }, { 0x5428, 0 }, { 0x5429, 4 }, { 0x5441, 0 }, { 0x5450, 0 }, { 0x5451, 0 }, { 0x5452, 0 },
	{ 0x5456, 36 }, { 0x5457, 0 }, { 0x5460, 8 },
	{ 0x8901, 0 }, { 0x8902, 0 }, { 0x8903, 4 }, { 0x8904, 4 }, { 0x8905, 4 }, { 0x8906, 16 }, { 0x8907, 16 },
	{ 0x8910, 40 }, { 0x8913, 40 }, { 0x8914, 0 }, { 0x8915, 40 }, { 0x8916, 0 }, { 0x8917, 40 }, { 0x8919, 40 },
	{ 0x891b, 40 }, { 0x891d, 40 }, { 0x8921, 40 }, { 0x8922, 0 }, { 0x8927, 40 }, { 0x8933, 40 }, { 0x8942, 40 },
	{ 0x0001, 4 }, { 0x0002, 4 }, { 0x125e, 4 }, { 0x125f, 0 }, { 0x1260, 8 }, { 0x1261, 0 }, { 0x1263, 8 }, { 0x1268, 4 },
	{ 0x1278, 4 }, { 0x1279, 4 }, { 0x127a, 4 }, { 0x127b, 4 }, { 0x127c, 4 },
};

static void dg_ioctl(struct dg_pieces *s, uint64_t request, uint64_t argument)
{
	struct ifconf {
		int32_t length;
		uint64_t buffer;
	} *interfaces = (struct ifconf *)argument;
	uint32_t r = (uint32_t)request;

	for (uint32_t i = 0; i < sizeof(dg_ioctls) / sizeof(dg_ioctls[0]); i++)
		if (dg_ioctls[i].request == r) {
			dg_piece_out(s, argument, dg_ioctls[i].size);
			return;
		}
	if (r == 0x8912 /* SIOCGIFCONF */) {
		dg_piece_out(s, argument, sizeof(*interfaces));
		dg_piece_out(s, interfaces->buffer, (uint64_t)interfaces->length);
		return;
	}
	if (_IOC_DIR(r) & _IOC_READ) {
		if (dg_readable(argument, _IOC_SIZE(r)))
			dg_piece_out(s, argument, _IOC_SIZE(r));
	} else if (!(_IOC_DIR(r) & _IOC_WRITE)) {
		s->unknown = true;
	}
}

static void dg_fcntl(struct dg_pieces *s, uint64_t command, uint64_t argument)
{
	switch (command) {
	case 5:  /* F_GETLK */
	case 36: /* F_OFD_GETLK */
		dg_piece_out(s, argument, 32);
		return;
	case 16:   /* F_GETOWN_EX */
	case 17:   /* F_GETOWNER_UIDS */
	case 1035: /* F_GET_RW_HINT */
	case 1037: /* F_GET_FILE_RW_HINT */
		dg_piece_out(s, argument, 8);
		return;
	}
}

static void dg_prctl_pieces(struct dg_pieces *s, uint64_t option, uint64_t argument)
{
	switch (option) {
	case 2:  /* PR_GET_PDEATHSIG */
	case 5:  /* PR_GET_UNALIGN */
	case 9:  /* PR_GET_FPEMU */
	case 11: /* PR_GET_FPEXC */
	case 19: /* PR_GET_ENDIAN */
	case 25: /* PR_GET_TSC */
	case 37: /* PR_GET_CHILD_SUBREAPER */
		dg_piece_out(s, argument, 4);
		return;
	case 16: /* PR_GET_NAME */
		dg_piece_out(s, argument, 16);
		return;
	case 40: /* PR_GET_TID_ADDRESS */
		dg_piece_out(s, argument, 8);
		return;
	case 15: /* PR_SET_NAME */
		return;
	case 35: /* PR_SET_MM */
		s->unknown = true;
		return;
	}
}

/* shmctl, semctl, msgctl: what comes out follows from the command. */
static void dg_ipc(struct dg_pieces *s, long nr, uint64_t command, uint64_t argument)
{
	static const uint32_t status[3] = { 112, 104, 120 }, info[3] = { 72, 36, 32 };
	uint32_t which = nr == SYS_shmctl ? 0 : nr == SYS_semctl ? 1 : 2;

	switch (command) {
	case 2:  /* IPC_STAT */
	case 11: /* MSG_STAT */
	case 13: /* SHM_STAT, MSG_STAT_ANY */
	case 15: /* SHM_STAT_ANY */
	case 18: /* SEM_STAT */
	case 20: /* SEM_STAT_ANY */
		/* These are commands with values in them for semaphores. */
		if (nr != SYS_semctl || command == 2 || command > 17)
			dg_piece_out(s, argument, status[which]);
		else if (command == 13) /* GETALL: how many is not said here */
			s->unknown = true;
		return;
	case 3:  /* IPC_INFO */
	case 14: /* SHM_INFO */
	case 19: /* SEM_INFO */
		if (nr != SYS_semctl || command != 14)
			dg_piece_out(s, argument, info[which]);
		return;
	}
}

/* Requests of ptrace that bring something: address and data are its third and fourth
 * argument. Source: the kernel's ptrace_request and arch_ptrace. */
static void dg_ptrace_pieces(struct dg_pieces *s, uint64_t request, uint64_t address, uint64_t data, uint64_t result)
{
	const struct iovec *set = (const struct iovec *)data;

	switch (request) {
	case 1: case 2: case 3: /* PTRACE_PEEKTEXT, PEEKDATA, PEEKUSER */
	case 0x4201: /* PTRACE_GETEVENTMSG */
		dg_piece_out(s, data, 8);
		return;
	case 12: /* PTRACE_GETREGS: struct user_regs_struct */
		dg_piece_out(s, data, 27 * 8);
		return;
	case 14: /* PTRACE_GETFPREGS: struct user_fpregs_struct */
		dg_piece_out(s, data, 512);
		return;
	case 0x4202: /* PTRACE_GETSIGINFO */
		dg_piece_out(s, data, 128);
		return;
	case 0x4204: /* PTRACE_GETREGSET: the length is the number of bytes stored */
		dg_piece_out(s, data, sizeof(*set));
		dg_piece_out(s, (uint64_t)set->iov_base, set->iov_len);
		return;
	case 0x4209: /* PTRACE_PEEKSIGINFO */
		dg_piece_out(s, data, result * 128);
		return;
	case 0x420a: /* PTRACE_GETSIGMASK */
		dg_piece_out(s, data, address);
		return;
	case 0x420e: /* PTRACE_GET_SYSCALL_INFO */
	case 0x420f: /* PTRACE_GET_RSEQ_CONFIGURATION */
		dg_piece_out(s, data, dg_least(address, result));
		return;
	case 18:     /* PTRACE_GETFPXREGS */
	case 25:     /* PTRACE_GET_THREAD_AREA */
	case 30:     /* PTRACE_ARCH_PRCTL */
	case 0x420c: /* PTRACE_SECCOMP_GET_FILTER */
	case 0x420d: /* PTRACE_SECCOMP_GET_METADATA */
		s->unknown = true;
		return;
	}
}

/* ---- a row's parts ---- */

/* A stop (of job control, of a tracer) breaks into a sleep. The kernel continues the sleep and returns 0,
 * but it has written the time that remained (nanosleep_copyout in the kernel's time/hrtimer.c). */
static bool dg_left_changed(const struct dg_pieces *s, uint64_t at)
{
	const uint64_t *left = (const uint64_t *)at;

	return s->left_at == at && at && (left[0] != s->left[0] || left[1] != s->left[1]);
}

static void dg_part_out(struct dg_pieces *s, const struct dg_call *c, const struct dg_part *p, long result)
{
	const uint64_t *a = c->args;
	uint64_t at = a[p->arg], count = a[p->count];

	switch (p->how) {
	case DG_OUT_BITS:
		if (result >= 0)
			dg_piece_out(s, at, (count + 63) / 64 * 8);
		return;
	case DG_OUT_VALUED:
		if (result < 0 || !count)
			return;
		if (at)
			dg_piece_out(s, at, dg_least(*(const uint32_t *)count, s->named));
		dg_piece_out(s, count, 4);
		return;
	case DG_OUT_VECTOR:
		if (result > 0)
			dg_vector(s, DG_PAYLOAD_OUT, at, count, (uint64_t)result);
		return;
	case DG_OUT_MESSAGE:
		if (result >= 0) {
			dg_piece_out(s, at, sizeof(struct msghdr));
			dg_message_out(s, (const struct msghdr *)at, s->named, (uint64_t)result);
		}
		return;
	case DG_OUT_MESSAGES:
		if (result > 0)
			dg_messages_out(s, at, (uint64_t)result);
		return;
	case DG_OUT_SENT:
		if (result > 0)
			dg_messages_sent(s, at, (uint64_t)result);
		return;
	case DG_OUT_REMAINS:
		if (result == -EINTR || (!result && dg_left_changed(s, at)))
			dg_piece_out(s, at, p->size);
		return;
	case DG_OUT_TIMEOUT:
		if (result >= 0 || result == -EINTR)
			dg_piece_out(s, at, p->size);
		return;
	case DG_OUT_MSGRCV:
		if (result >= 0)
			dg_piece_out(s, at, (uint64_t)result + 8);
		return;
	case DG_OUT_IOCTL:
		if (result >= 0)
			dg_ioctl(s, a[1], at);
		return;
	case DG_OUT_FCNTL:
		if (result >= 0)
			dg_fcntl(s, a[1], at);
		return;
	case DG_OUT_PRCTL:
		if (result >= 0)
			dg_prctl_pieces(s, a[0], at);
		return;
	case DG_OUT_PTRACE:
		if (result >= 0)
			dg_ptrace_pieces(s, a[0], count, at, (uint64_t)result);
		return;
	case DG_OUT_IPC:
		if (result >= 0)
			dg_ipc(s, c->nr, count, at);
		return;
	case DG_OUT_CAPABILITIES:
		if (result >= 0) /* version 1 has one set of three words, later ones have two */
			dg_piece_out(s, at, *(const uint32_t *)a[0] == 0x19980330 ? 12 : 24);
		return;
	case DG_OUT_RESIDENT:
		if (result >= 0)
			dg_piece_out(s, at, (count + 4095) / 4096);
		return;
	case DG_OUT_HANDLE:
		if (result >= 0 || result == -EOVERFLOW)
			dg_piece_out(s, at, 8 + (result < 0 ? 0 : *(const uint32_t *)at));
		return;
	}
}

static void dg_part_in(struct dg_pieces *s, const struct dg_call *c, const struct dg_part *p, long result)
{
	uint64_t at = c->args[p->arg], count = c->args[p->count];

	if (p->how == DG_IN_TEXT) {
		dg_text(s, at, result);
		return;
	}
	if (result < 0)
		return;
	switch (p->how) {
	case DG_IN_FIXED:
		dg_piece_in(s, at, p->size);
		return;
	case DG_IN_RESULT:
		dg_piece_in(s, at, (uint64_t)result);
		return;
	case DG_IN_COUNTED:
		dg_piece_in(s, at, (count & UINT32_MAX) * p->size);
		return;
	case DG_IN_VECTOR:
		dg_vector(s, DG_PAYLOAD_DIGEST, at, count, (uint64_t)result);
		return;
	case DG_IN_MESSAGE:
		dg_message_in(s, (const struct msghdr *)at, (uint64_t)result);
		return;
	case DG_IN_MESSAGES:
		dg_messages_in(s, at, (uint64_t)result);
		return;
	}
}

static inline void dg_pieces_of(struct dg_pieces *s, const struct dg_call *c, long result)
{
	for (const struct dg_part *p = c->row->parts; p < c->row->parts + DG_PARTS && p->how; p++) {
		uint64_t at = c->args[p->arg], count = c->args[p->count];

		switch (p->how) {
		case DG_OUT_FIXED:
			if (result >= 0)
				dg_piece_out(s, at, p->size);
			break;
		case DG_OUT_POSITIVE:
			if (result > 0)
				dg_piece_out(s, at, p->size);
			break;
		case DG_OUT_RESULT:
			if (result > 0)
				dg_piece_out(s, at, dg_least((uint64_t)result, count) * p->size);
			break;
		case DG_OUT_COUNTED:
			if (result >= 0)
				dg_piece_out(s, at, (count & UINT32_MAX) * p->size);
			break;
		default:
			if (p->how >= DG_IN)
				dg_part_in(s, c, p, result);
			else
				dg_part_out(s, c, p, result);
		}
	}
}

/* On the stack it can be read; elsewhere it is asked first. */
static bool dg_readable_before(const struct dg_frame *f, uint64_t at, uint64_t length)
{
	return at && ((at >= f->rsp && at + length <= dg_me->stack_high) || dg_readable(at, length));
}

/* What the kernel is about to write over: of a value-result length, what the program offers. */
static void dg_pieces_before(struct dg_pieces *s, const struct dg_frame *f, const struct dg_call *c)
{
	s->named = 0;
	s->left_at = 0;
	for (const struct dg_part *p = c->row->parts; p < c->row->parts + DG_PARTS && p->how; p++) {
		uint64_t at = c->args[p->how == DG_OUT_VALUED ? p->count : p->arg];

		if (p->how == DG_OUT_MESSAGE && at)
			at += offsetof(struct msghdr, msg_namelen);
		if (p->how == DG_OUT_VALUED || p->how == DG_OUT_MESSAGE) {
			if (dg_readable_before(f, at, sizeof(s->named)))
				s->named = *(const uint32_t *)at;
			return;
		}
		if (p->how == DG_OUT_REMAINS && dg_readable_before(f, at, sizeof(s->left))) {
			dg_copy(s->left, (const void *)at, sizeof(s->left));
			s->left_at = at;
			return;
		}
	}
}
