/* The process that runs debug code. It has a stack, a heap and a C library of its own, and no access to the program: the tool copies
   pages of the program into the pool, which this process maps at the addresses of the program, for reading only. So a pointer of the
   program leads to what the program has there, and a store to it is a fault. */
#define _GNU_SOURCE
#include "control.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

static struct dg_control *control;
static const uint64_t *addresses; /* of the slots */
static char *arguments, *missing;

/* location is a word of the blocks' object that holds the address of a slot. */
struct location {
    uint32_t slot;
    uint64_t *word;
};
static struct location locations[4 * DG_SLOTS];
static uint32_t location_count;

typedef void block(void);
static block *const *blocks;
static const uint32_t *block_count;

static volatile sig_atomic_t running, handling;
static sigjmp_buf abandoned;

/* raw_call is a system call that leaves errno alone. */
static long raw_call(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return result;
}

static _Noreturn void end(int status)
{
    for (;;)
        raw_call(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

static void send_event(uint32_t event)
{
    char byte = 0;
    control->event = event;
    if (raw_call(SYS_write, DG_FD_EVENTS, (long)&byte, 1, 0, 0, 0) != 1)
        end(1);
}

/* apply does what the tool says about pages. The addresses are the tool's business. */
static void apply(void)
{
    for (uint32_t i = 0; i < control->operations && i < DG_OPERATIONS; i++) {
        struct dg_operation *o = &control->operation[i];
        long size = (long)o->count * DG_PAGE;
        if (o->page == DG_UNMAP)
            raw_call(SYS_munmap, (long)o->addr, size, 0, 0, 0, 0);
        else if ((uint64_t)raw_call(SYS_mmap, (long)o->addr, size, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, DG_FD_POOL, (long)o->page * DG_PAGE) != o->addr)
            end(1);
    }
}

static void wait_command(void)
{
    char byte;
    if (raw_call(SYS_read, DG_FD_COMMANDS, (long)&byte, 1, 0, 0, 0) != 1)
        end(0); /* the tool has ended */
    apply();
}

static ssize_t print(void *unused, const char *text, size_t size)
{
    (void)unused;
    for (size_t done = 0; done < size;) {
        if (control->output == DG_OUTPUT) {
            send_event(DG_PRINTED);
            wait_command();
        }
        size_t part = DG_OUTPUT - control->output;
        if (part > size - done)
            part = size - done;
        memcpy(control->text + control->output, text + done, part); /* text may be the program's */
        control->output += (uint32_t)part;
        done += part;
    }
    return (ssize_t)size;
}

static FILE *stream(void)
{
    cookie_io_functions_t functions = {.write = print};
    FILE *f = fopencookie(NULL, "w", functions);
    if (!f)
        end(1);
    __fsetlocking(f, FSETLOCKING_BYCALLER); /* a block may be abandoned in it */
    return f;
}

static _Unwind_Reason_Code note(struct _Unwind_Context *context, void *unused)
{
    (void)unused;
    if (control->frames == DG_FRAMES)
        return _URC_END_OF_STACK;
    int before = 0;
    uint64_t pc = _Unwind_GetIPInfo(context, &before);
    control->frame[control->frames++] = before ? pc : pc - 1;
    return _URC_NO_REASON;
}

/* fail notes why a block cannot continue. */
static _Noreturn void fail(uint32_t failure, uint64_t address, ucontext_t *at)
{
    int again = handling;
    handling = 1;
    control->failure = failure;
    control->address = address;
    control->frames = 0;
    if (again) {
        send_event(DG_ENDED);
        end(1);
    }
    if (failure == DG_CALL) { /* there is no code at the pc, which the unwinder would read: it begins in the call instruction */
        at->uc_mcontext.gregs[REG_RIP] = (greg_t)(*(uint64_t *)at->uc_mcontext.gregs[REG_RSP] - 1);
        at->uc_mcontext.gregs[REG_RSP] += 8;
    }
    _Unwind_Backtrace(note, NULL);
    handling = 0;
    if (!running || failure == DG_TIME || (failure == DG_SIGNAL && address == SIGABRT)) {
        send_event(DG_ENDED);
        end(1);
    }
    running = 0;
    siglongjmp(abandoned, 1);
}

/* call_program has the tool call a function of the program, with the registers at its first instruction, and returns to the caller. */
static void call_program(uint64_t function, ucontext_t *at)
{
    static const int registers[] = {REG_RDI, REG_RSI, REG_RDX, REG_RCX, REG_R8, REG_R9};
    greg_t *regs = at->uc_mcontext.gregs;
    fpregset_t floating = at->uc_mcontext.fpregs;
    struct dg_call *c = &control->call;
    c->function = function;
    c->stack = (uint64_t)regs[REG_RSP] + 8;
    for (int i = 0; i < 6; i++)
        c->integer[i] = (uint64_t)regs[registers[i]];
    memcpy(c->vector, floating->_xmm, sizeof c->vector);
    c->answered = 0;
    send_event(DG_CALLED);
    wait_command();
    if (!c->answered)
        fail(DG_CALL, function, at);
    regs[REG_RAX] = (greg_t)c->rax;
    regs[REG_RDX] = (greg_t)c->rdx;
    memcpy(floating->_xmm, c->result, sizeof c->result);
    struct _libc_fpstate x87;
    memcpy(&x87, c->x87, sizeof c->x87);
    floating->swd = x87.swd;
    floating->ftw = x87.ftw;
    memcpy(floating->_st, x87._st, sizeof x87._st);
    regs[REG_RIP] = (greg_t)*(uint64_t *)regs[REG_RSP];
    regs[REG_RSP] += 8;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    enum { WRITE = 2, FETCH = 16 }; /* bits of the page fault error code, Intel SDM volume 3, 4.7 */
    ucontext_t *at = context;
    uint64_t address = (uint64_t)info->si_addr;
    uint64_t error = (uint64_t)at->uc_mcontext.gregs[REG_ERR];
    if (handling || info->si_code <= 0)
        fail(DG_SIGNAL, (uint64_t)number, at);
    if (info->si_code == SI_KERNEL)
        fail(DG_READ, UINT64_MAX, at); /* the address is not canonical, and is not known */
    if (error & FETCH) {
        call_program(address, at);
        return;
    }
    if (address - (uint64_t)missing < (uint64_t)DG_SLOTS << DG_MISSING_SHIFT)
        fail(DG_MISSING, address, at);
    if (error & WRITE)
        fail(DG_STORE, address, at);
    control->address = address;
    send_event(DG_WANTED);
    wait_command();
    if (control->operations == 0)
        fail(DG_READ, address, at);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    switch (number) {
    case SIGSYS:
        fail(DG_SYSTEM_CALL, (uint64_t)info->si_syscall, context);
    case SIGUSR2:
        fail(DG_TIME, 0, context);
    }
    fail(DG_SIGNAL, (uint64_t)number, context);
}

static void handle_signals(void)
{
    enum { SIZE = 256 * 1024 };
    stack_t stack = {.ss_size = SIZE, .ss_sp = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
    if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL))
        end(1);
    static const int numbers[] = {SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGUSR2};
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    action.sa_sigaction = on_signal;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

/* find_locations finds the words of the blocks' object that the dynamic linker would have filled with the addresses of slots
   (System V ABI, AMD64 supplement, table 4.10). */
static void find_locations(const struct link_map *map, const char *const *names, uint32_t count)
{
    const Elf64_Rela *rela = NULL, *jumps = NULL;
    const Elf64_Sym *symbols = NULL;
    const char *strings = NULL;
    size_t size = 0, jump_size = 0;
    for (const Elf64_Dyn *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        switch (d->d_tag) {
        case DT_RELA: rela = (const void *)d->d_un.d_ptr; break;
        case DT_RELASZ: size = d->d_un.d_val; break;
        case DT_JMPREL: jumps = (const void *)d->d_un.d_ptr; break;
        case DT_PLTRELSZ: jump_size = d->d_un.d_val; break;
        case DT_SYMTAB: symbols = (const void *)d->d_un.d_ptr; break;
        case DT_STRTAB: strings = (const void *)d->d_un.d_ptr; break;
        }
    }
    for (int table = 0; table < 2; table++) {
        const Elf64_Rela *r = table ? jumps : rela;
        size_t entries = (table ? jump_size : size) / sizeof *r;
        for (size_t i = 0; r && symbols && strings && i < entries; i++) {
            const char *name = strings + symbols[ELF64_R_SYM(r[i].r_info)].st_name;
            if (strncmp(name, "_dg_s", 5))
                continue;
            for (uint32_t slot = 0; slot < count; slot++)
                if (!strcmp(name, names[slot]) && location_count < sizeof locations / sizeof *locations)
                    locations[location_count++] = (struct location){slot, (uint64_t *)(map->l_addr + r[i].r_offset)};
        }
    }
}

static void *symbol(void *object, const char *name)
{
    void *found = dlsym(object, name);
    if (!found) {
        control->output = 0;
        print(NULL, name, strlen(name));
        control->failure = DG_LOAD;
        send_event(DG_ENDED);
        end(1);
    }
    return found;
}

static void load(const char *path)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        const char *why = dlerror();
        print(NULL, why, strlen(why));
        control->failure = DG_LOAD;
        send_event(DG_ENDED);
        end(1);
    }
    struct link_map *map;
    dlinfo(object, RTLD_DI_LINKMAP, &map);
    control->base = map->l_addr;
    blocks = symbol(object, "_dg_blocks");
    block_count = symbol(object, "_dg_block_count");
    find_locations(map, symbol(object, "_dg_names"), *(const uint32_t *)symbol(object, "_dg_name_count"));
}

/* confine leaves the process with the memory that it has and the two pipes. */
static void confine(void)
{
    static const struct {
        int resource;
        rlim_t limit;
    } limits[] = {{RLIMIT_CORE, 0}, {RLIMIT_FSIZE, 0}, {RLIMIT_NPROC, 0}, {RLIMIT_DATA, (rlim_t)4 << 30}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (setrlimit(limits[i].resource, &(struct rlimit){limits[i].limit, limits[i].limit}))
            end(1);
#define NUMBER offsetof(struct seccomp_data, nr)
#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
/* only with this descriptor, whose low half is in the first argument's first word */
#define ALLOW_WITH(number, fd)                                                                                         \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4),                                                                 \
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),                                    \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, fd, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),                   \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NUMBER),
        ALLOW_WITH(SYS_read, DG_FD_COMMANDS),
        ALLOW_WITH(SYS_write, DG_FD_EVENTS),
        ALLOW(SYS_mmap),
        ALLOW(SYS_munmap),
        ALLOW(SYS_mremap),
        ALLOW(SYS_mprotect),
        ALLOW(SYS_madvise),
        ALLOW(SYS_brk),
        ALLOW(SYS_rt_sigreturn),
        ALLOW(SYS_rt_sigprocmask),
        ALLOW(SYS_clock_gettime),
        ALLOW(SYS_gettimeofday),
        ALLOW(SYS_getrandom),
        ALLOW(SYS_getpid),
        ALLOW(SYS_gettid),
        ALLOW(SYS_tgkill),
        ALLOW(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        end(1);
}

int main(int count, char **words)
{
    if (count != 2)
        return 2;
    /* Mappings from the bottom up keep away from where programs have theirs. */
    int layout = personality(0xffffffff);
    if (layout != -1 && !(layout & ADDR_COMPAT_LAYOUT) && personality((unsigned)(layout & ~ADDR_NO_RANDOMIZE) | ADDR_COMPAT_LAYOUT) != -1)
        execve("/proc/self/exe", words, (char *[]){NULL});
    control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, DG_FD_CONTROL, 0);
    arguments = mmap(NULL, DG_ARGUMENT_PAGES * DG_PAGE, PROT_READ, MAP_SHARED, DG_FD_POOL, 0);
    missing = mmap(NULL, (size_t)DG_SLOTS << DG_MISSING_SHIFT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (control == MAP_FAILED || arguments == MAP_FAILED || missing == MAP_FAILED || control->version != DG_VERSION)
        return 1;
    addresses = (const uint64_t *)arguments;
    control->arguments = (uint64_t)arguments;
    control->missing = (uint64_t)missing;
    stdout = stream();
    stderr = stream();
    setvbuf(stderr, NULL, _IONBF, 0);
    setvbuf(stdout, NULL, _IOLBF, 4096);
    _Unwind_Backtrace(note, NULL); /* it may load something the first time */
    handle_signals();
    load(words[1]);
    confine();
    volatile uint32_t event = DG_READY;
    if (sigsetjmp(abandoned, 0)) {
        event = DG_FAILED;
        fflush(stdout);
    }
    for (;; event = DG_DONE) {
        send_event(event);
        wait_command();
        for (uint32_t i = 0; i < location_count; i++) {
            struct location *l = &locations[i];
            if (l->slot < control->slots)
                *l->word = addresses[l->slot];
        }
        running = 1;
        if (control->block < *block_count)
            blocks[control->block]();
        fflush(stdout);
        running = 0;
    }
}
