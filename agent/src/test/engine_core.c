/* The engine's core without a recorder: what it writes to a log, whose turn it
 * gives in a replay, and that a signal is not lost wherever it comes on the way
 * in and out. The engine runs in a child, which this program traces. */
#define dg_call dg_call_of_the_engine
#define dg_leave dg_leave_of_the_engine
#include "engine.c"
#undef dg_call
#undef dg_leave

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* sys/ptrace.h has as enumerators what the engine has from linux/ptrace.h. */
long ptrace(int request, ...);

bool dg_turn_may_end(void)
{
	return true;
}

void dg_identify(void)
{
}

/* A place in wrap/mutex.c, which is not here: no thread is ever there. */
__asm__(".text\n.globl dg_wake_took\n.hidden dg_wake_took\ndg_wake_took: ud2");

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "failed: %s: errno %d\n", what, errno);
	_exit(99);
}

/* ---- operations, which run on the engine's stack ---- */

enum { OP_WRITE = 1000, OP_STEP, OP_NOTHING };

static void op_write(uint32_t number, uint32_t bytes)
{
	struct dg_event *e = dg_event_begin(DG_EV_ORDER, number, 77, 2, DG_PAYLOAD_ROOM(bytes) + DG_PAYLOAD_ROOM(3));
	uint8_t *to;

	if (!e)
		return;
	e->result = -(int64_t)number;
	dg_event_args(e)[0] = dg_me->index;
	dg_event_args(e)[1] = bytes;
	to = dg_event_payload(e, DG_PAYLOAD_OUT, 4711, NULL, bytes);
	for (uint32_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)(number + i);
	dg_event_payload(e, DG_PAYLOAD_TEXT, 0, "abc", 3);
	dg_me->budget -= number % 5;
	dg_event_commit(e);
}

/* Written only by the thread that has the right to run. */
static struct step {
	uint32_t thread, object;
} steps[1 << 20];
static uint32_t step_count;

static void op_step(void)
{
	const struct dg_event *e = dg_event_await(DG_EV_ORDER, dg_me->ordinal + 1);
	uint64_t args[1] = { dg_me->index };

	dg_me->budget -= dg_me->budget < 3 ? dg_me->budget : 3;
	dg_event_take(e, DG_EV_ORDER, dg_me->ordinal + 1, 77, args, 1);
	steps[step_count % (1 << 20)] = (struct step){ dg_me->index, (uint32_t)e->object };
	step_count++;
}

void dg_call(struct dg_frame *f) DG_HIDDEN;
void dg_call(struct dg_frame *f)
{
	long op = (long)f->rdi;

	if (op == OP_WRITE)
		op_write((uint32_t)f->rsi, (uint32_t)f->rdx);
	else if (op == OP_STEP)
		op_step();
	f->rax = 4242;
}

/* ---- in the child ---- */

static void start_engine(enum dg_mode mode, const char *path)
{
	struct dg_control *c = DG_CONTROL;

	check(dg_map_private(DG_ENGINE_CONTROL, dg_control_bytes()), "map the control");
	dg_control_fill(c, (uint32_t)getppid());
	c->mode = mode;
	c->free = DG_FREE_NOT; /* what a controller answers that does not want it */
	snprintf(c->log_path, sizeof(c->log_path), "%s", path);
	snprintf(c->data_path, sizeof(c->data_path), "%s", "/dev/null");
}

static void *write_events(void *arg)
{
	uint32_t count = (uint32_t)(uint64_t)arg;

	for (uint32_t i = 0; i < count; i++)
		dg_engine(OP_WRITE, i, i % 700 == 699 ? 600000 : i % 100 == 99 ? 100000 + i : i % 64, 0, 0, 0);
	return NULL;
}

static void *step_through(void *arg)
{
	(void)arg;
	for (;;)
		dg_engine(OP_STEP, 0, 0, 0, 0, 0);
	return NULL;
}

struct thread {
	struct dg_rthread *me;
	void *(*run)(void *);
	void *arg;
};

static void *run_thread(void *arg)
{
	struct thread *t = arg;

	dg_me = t->me;
	dg_me->state = DG_R_RUNNING;
	t->run(t->arg);
	return NULL;
}

/* In threads 1 (the calling one) to count. */
static void in_threads(uint32_t count, void *(*run)(void *), void *arg)
{
	pthread_t id[64];
	struct thread threads[64];

	check(count < 64, "so few threads");
	for (uint32_t i = 2; i <= count; i++) {
		threads[i] = (struct thread){ dg_rthread_new(i), run, arg };
		check(threads[i].me, "a thread's slot");
		if (DG_CONTROL->mode == DG_MODE_REPLAY) {
			dg_rthread_events(threads[i].me);
			dg_me = threads[i].me;
			dg_budget_set(dg_me);
		}
		DG_CONTROL->threads = i;
	}
	dg_me = dg_rthread_number(1);
	for (uint32_t i = 2; i <= count; i++)
		check(!pthread_create(&id[i], NULL, run_thread, &threads[i]), "pthread_create");
	run(arg);
	for (uint32_t i = 2; i <= count; i++)
		pthread_join(id[i], NULL);
}

/* log PATH THREADS EVENTS LIMIT */
static void child_log(char **argv)
{
	start_engine(DG_MODE_RECORD, argv[0]);
	DG_CONTROL->log_limit = strtoull(argv[3], NULL, 0);
	check(dg_mode_start(DG_CONTROL, -1), "open the log");
	check(dg_first_thread(DG_CONTROL, 0), "the first thread");
	in_threads((uint32_t)atoi(argv[1]), write_events, (void *)strtoull(argv[2], NULL, 0));
	printf("stopped %u ticket %lu\n", DG_CONTROL->stopped, DG_CONTROL->ticket);
	exit(0);
}

/* turn IMAGE THREADS */
static void child_turn(char **argv)
{
	start_engine(DG_MODE_REPLAY, argv[0]);
	if (!dg_mode_start(DG_CONTROL, -1)) {
		printf("refused\n");
		exit(0);
	}
	check(dg_first_thread(DG_CONTROL, 0), "the first thread");
	dg_budget_set(dg_me);
	in_threads((uint32_t)atoi(argv[1]), step_through, NULL);
}

/* digest SEED: of standard input, from an odd address */
static void child_digest(const char *seed)
{
	static uint8_t text[4096] __attribute__((aligned(8)));
	long n = read(0, text + 1, sizeof(text) - 1);

	printf("%lx\n", dg_digest(text + 1, (uint64_t)n, strtoull(seed, NULL, 0)));
	exit(0);
}

static void child_readable(void)
{
	uint8_t *p = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(p + 200 * 4096, 4096, PROT_NONE);
	printf("%d %d %d %d %d %d\n", dg_readable((uint64_t)p, 200 * 4096), dg_readable((uint64_t)p, 200 * 4096 + 1),
	       dg_readable((uint64_t)p + 201 * 4096 - 1, 1), dg_readable((uint64_t)p + 201 * 4096, 55 * 4096),
	       dg_readable(UINT64_MAX - 5, 5), dg_readable((uint64_t)p, 0));
	exit(0);
}

/* ---- registers, before and after a way through the engine ---- */

enum { RAX, RBX, RCX, RDX, RSI, RDI, RBP, R8, R9, R10, R11, R12, R13, R14, R15, RSP, FLAGS, REGISTERS };

uint64_t step_before[REGISTERS], step_after[REGISTERS], step_zone[16];
struct dg_stub step_info;
int leaves;

void step_call(void), step_stub(void), step_counter(void);
extern const char step_stub_go[], step_stub_origin[], step_counter_at[];

#define MOVES(to, from) \
	to("rax", 0) to("rbx", 1) to("rcx", 2) to("rdx", 3) to("rsi", 4) to("rdi", 5) to("rbp", 6) to("r8", 7) \
	to("r9", 8) to("r10", 9) to("r11", 10) to("r12", 11) to("r13", 12) to("r14", 13) to("r15", 14)
#define LOAD(r, i) "movq step_before+8*" #i "(%rip), %" r "\n"
#define STORE(r, i) "movq %" r ", step_after+8*" #i "(%rip)\n"

/* Below the stack pointer lies the red zone, with something in it. */
#define WAY(name, zone, how)                                                                                       \
	__asm__(".text\n.globl " name "\n" name ":\n"                                                                \
		"pushq %rbx; pushq %rbp; pushq %r12; pushq %r13; pushq %r14; pushq %r15; pushq %rbp\n"               \
		"movq %rsp, step_before+8*15(%rip)\n"                                                                \
		"pushq step_before+8*16(%rip); popfq\n" MOVES(LOAD, )                                                \
		"movq %rbx, -8(%rsp); movq %r15, -128(%rsp)\n" how                                                  \
		MOVES(STORE, ) "movq %rsp, step_after+8*15(%rip)\n"                                                  \
		"movq -8(%rsp), %rax; movq %rax, step_zone(%rip)\n"                                                  \
		"movq -128(%rsp), %rax; movq %rax, step_zone+8(%rip)\n"                                              \
		"pushfq; popq step_after+8*16(%rip)\n"                                                               \
		"popq %rbp; popq %r15; popq %r14; popq %r13; popq %r12; popq %rbp; popq %rbx; ret\n")

WAY("step_call", 0, "call dg_engine\n");
WAY("step_stub", 1,
    ".globl step_stub_origin\nstep_stub_origin: leaq step_info(%rip), %rcx\n"
    "jmp dg_entry_syscall\n.globl step_stub_go\nstep_stub_go:\n");
WAY("step_counter", 1, ".globl step_counter_at\nstep_counter_at: rdtsc\n");

/* Instead of engine/signal_leave.c's. */
void dg_leave(struct dg_frame *f)
{
	check((uint64_t)f == dg_me->inside, "the frame of a signal");
	dg_me->pending = 0;
	leaves++;
}

static void child_step(const char *how)
{
	start_engine(DG_MODE_RECORD, "/dev/null");
	DG_CONTROL->stopped = DG_LIMIT_DISK;
	check(dg_first_thread(DG_CONTROL, 0), "the first thread");
	dg_mode = DG_MODE_RECORD;
	step_info = (struct dg_stub){ (uint64_t)step_stub_go, (uint64_t)step_stub_go, (uint64_t)step_stub_origin, 0, 0 };
	for (int i = 0; i < RSP; i++)
		step_before[i] = 0x0101010101010101ull * (uint64_t)(i + 17);
	step_before[FLAGS] = 0xac7; /* carry, parity, zero, sign, overflow, interrupts */
	step_before[RAX] = SYS_getpid;
	step_before[RDI] = OP_NOTHING;
	raise(SIGSTOP);
	if (!strcmp(how, "call"))
		step_call();
	else if (!strcmp(how, "stub"))
		step_stub();
	else
		step_counter();
	dg_mode = DG_MODE_OFF;
	raise(SIGSTOP);
	exit(0);
}

/* ---- the tracer ---- */

static uint64_t peek(pid_t pid, const void *at)
{
	errno = 0;
	uint64_t word = (uint64_t)ptrace(PTRACE_PEEKDATA, pid, at, 0);

	check(!errno, "PTRACE_PEEKDATA");
	return word;
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (!pid)
		check(!ptrace(PTRACE_TRACEME, 0, 0, 0), "PTRACE_TRACEME");
	return pid;
}

static int wait_stop(pid_t pid)
{
	int status;

	check(waitpid(pid, &status, __WALL) == pid, "waitpid");
	if (!WIFSTOPPED(status) || (WSTOPSIG(status) != SIGSTOP && WSTOPSIG(status) != SIGTRAP)) {
		struct user_regs_struct r = { .rip = 0 };

		ptrace(PTRACE_GETREGS, pid, 0, &r);
		fprintf(stderr, "the child ended: %#x at %#llx (dg_engine is at %p)\n", status, r.rip, (void *)dg_engine);
		exit(98);
	}
	return WSTOPSIG(status);
}

static bool in_text(uint64_t pc)
{
	return pc >= (uint64_t)dg_text_low && pc < (uint64_t)dg_text_high;
}

extern const char dg_exit_check[] DG_HIDDEN, dg_exit_end[] DG_HIDDEN;

/* What the tracer of a recording does at rdtsc. */
static void send_to_counter(pid_t pid, struct user_regs_struct *r)
{
	r->rsp -= 136;
	check(!ptrace(PTRACE_POKEDATA, pid, r->rsp, r->rip), "PTRACE_POKEDATA");
	r->rip = (uint64_t)dg_entry_tsc;
	check(!ptrace(PTRACE_SETREGS, pid, 0, r), "PTRACE_SETREGS");
}

/* Steps into the engine, and count steps further. False: it is out again. */
static bool step_to(pid_t pid, long count, struct user_regs_struct *r)
{
	bool entered = false;

	for (;;) {
		check(!ptrace(PTRACE_GETREGS, pid, 0, r), "PTRACE_GETREGS");
		if (r->rip == (uint64_t)step_counter_at)
			send_to_counter(pid, r);
		if (in_text(r->rip))
			entered = true;
		if (entered && !in_text(r->rip) && !peek(pid, &dg_rthread_number(1)->inside))
			return false;
		if (entered && count-- == 0)
			return true;
		check(!ptrace(PTRACE_SINGLESTEP, pid, 0, 0), "PTRACE_SINGLESTEP");
		check(wait_stop(pid) == SIGTRAP, "a step");
	}
}

/* What engine/signal.c's handler does with a signal that finds the thread here. */
static void signal_here(pid_t pid, struct user_regs_struct *r)
{
	uint64_t *word = (uint64_t *)((uint64_t)dg_rthread_number(1) + offsetof(struct dg_rthread, pending));

	check(!ptrace(PTRACE_POKEDATA, pid, word, 1), "PTRACE_POKEDATA");
	if (r->rip > (uint64_t)dg_exit_check && r->rip < (uint64_t)dg_exit_end)
		r->rip = (uint64_t)dg_exit_check;
}

/* The kernel takes the trap flag for the program's own once a popfq was stepped
 * over. */
static void run_on(pid_t pid, struct user_regs_struct *r)
{
	r->eflags &= ~0x100ull;
	check(!ptrace(PTRACE_SETREGS, pid, 0, r), "PTRACE_SETREGS");
	check(!ptrace(PTRACE_CONT, pid, 0, 0), "PTRACE_CONT");
}

static void check_registers(pid_t pid, const char *how, long at)
{
	for (int i = 0; i < REGISTERS; i++) {
		uint64_t before = peek(pid, &step_before[i]), after = peek(pid, &step_after[i]);
		bool counter = !strcmp(how, "counter");

		/* What the instruction, or the call, destroys. */
		if (i == RAX || (i == RDX && counter) || ((i == RCX || i == R11) && !counter) || (i == FLAGS && !counter) ||
		    before == after)
			continue;
		printf("%s, signal at step %ld: register %d was %#lx and is %#lx\n", how, at, i, before, after);
		exit(1);
	}
	if (strcmp(how, "call") && (peek(pid, &step_zone[0]) != peek(pid, &step_before[RBX]) ||
				    peek(pid, &step_zone[1]) != peek(pid, &step_before[R15]))) {
		printf("%s, signal at step %ld: the red zone changed\n", how, at);
		exit(1);
	}
}

/* step call|stub|counter: a signal after every instruction. */
static void trace_steps(const char *how)
{
	for (long at = 0;; at++) {
		struct user_regs_struct r;
		pid_t pid = start_child();
		bool held;

		if (!pid)
			child_step(how);
		check(wait_stop(pid) == SIGSTOP, "the child's start");
		held = step_to(pid, at, &r);
		if (held)
			signal_here(pid, &r);
		run_on(pid, &r);
		check(wait_stop(pid) == SIGSTOP, "the child's end");
		check_registers(pid, how, at);
		if ((int)peek(pid, &leaves) != held) {
			printf("%s, signal at step %ld, pc %#llx: taken %d times\n", how, at, r.rip, (int)peek(pid, &leaves));
			exit(1);
		}
		kill(pid, SIGKILL);
		waitpid(pid, NULL, __WALL);
		if (!held) {
			printf("%ld steps\n", at);
			return;
		}
	}
}

static void show_divergence(pid_t pid)
{
	const struct dg_divergence *d = &DG_CONTROL->divergence;

	printf("diverged thread %u reason %u ordinal %lu place %lu want %lu got %lu\n", (uint32_t)peek(pid, &d->thread),
	       (uint32_t)(peek(pid, &d->thread) >> 32), peek(pid, &d->ordinal), peek(pid, &d->place), peek(pid, &d->want),
	       peek(pid, &d->got));
}

static void show_steps(pid_t pid)
{
	uint32_t count = (uint32_t)peek(pid, &step_count);

	for (uint32_t i = 0; i < count; i++) {
		uint64_t s = peek(pid, &steps[i]);

		printf("step %u %u\n", (uint32_t)s, (uint32_t)(s >> 32));
	}
}

/* Answers the engine's questions until a replay ends. */
static void trace_replay(pid_t pid)
{
	struct user_regs_struct r;
	int status, lasts = 0;

	for (;;) {
		pid_t tid = waitpid(-1, &status, __WALL);

		check(tid > 0, "waitpid");
		if (!WIFSTOPPED(status)) {
			if (tid != pid)
				continue;
			printf("ended %#x\n", status);
			return;
		}
		check(!ptrace(PTRACE_GETREGS, tid, 0, &r), "PTRACE_GETREGS");
		if (WSTOPSIG(status) != SIGTRAP || r.rbx != DG_TRAP_MAGIC) {
			if (WSTOPSIG(status) == SIGSEGV || WSTOPSIG(status) == SIGBUS) {
				printf("fault at %#llx\n", r.rip);
				break;
			}
			ptrace(PTRACE_CONT, tid, 0, 0);
			continue;
		}
		if (r.rax == DG_TRAP_LAST) {
			lasts++;
		} else if (r.rax == DG_TRAP_DIVERGED) {
			show_divergence(tid);
			break;
		} else if (r.rax == DG_TRAP_FINISHED) {
			show_steps(tid);
			printf("finished, %d threads were told\n", lasts);
			break;
		}
		ptrace(PTRACE_CONT, tid, 0, 0);
	}
	kill(pid, SIGKILL);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pid_t pid;

	if (!strcmp(what, "log") && argc == 6) {
		child_log(argv + 2);
	} else if (!strcmp(what, "digest") && argc == 3) {
		child_digest(argv[2]);
	} else if (!strcmp(what, "readable")) {
		child_readable();
	} else if (!strcmp(what, "step") && argc == 3) {
		trace_steps(argv[2]);
	} else if (!strcmp(what, "turn") && argc == 4) {
		pid = start_child();
		if (!pid) {
			raise(SIGSTOP);
			child_turn(argv + 2);
		}
		check(wait_stop(pid) == SIGSTOP, "the child's start");
		check(!ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL), "PTRACE_SETOPTIONS");
		ptrace(PTRACE_CONT, pid, 0, 0);
		trace_replay(pid);
	} else {
		fprintf(stderr, "what?\n");
		return 2;
	}
	return 0;
}
